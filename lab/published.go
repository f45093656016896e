package lab

import (
	"embed"
	"encoding/csv"
	"fmt"
	"strconv"
)

//go:embed data/*.csv
var data embed.FS

// rows reads a file of data: a map from column to text for each line.
func rows(name string) []map[string]string {
	f, err := data.Open("data/" + name + ".csv")
	if err != nil {
		panic("lab: " + err.Error()) // It is compiled in.
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("lab: %s: %v", name, err))
	}
	var list []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		list = append(list, row)
	}
	return list
}

// number is a value that a figure may have.
func number(text string) *float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &v
}

// published returns the number in a column of the first row of a file whose other
// columns are as wanted; nil if there is none.
func published(file, column string, wanted map[string]string) *float64 {
	for _, row := range rows(file) {
		match := true
		for k, v := range wanted {
			match = match && row[k] == v
		}
		if match {
			return number(row[column])
		}
	}
	return nil
}
