package page

import "math"

// A Format is how a plot writes its values: the name of a function of page.js.
type Format string

// The formats: durations in nanoseconds, and numbers.
const (
	Durations Format = "fn:duration"
	Numbers   Format = "fn:number"
)

// Bars is [BarsOf] durations.
func Bars(labels []string, series []Series, log bool) Option {
	return BarsOf(Durations, labels, series, log)
}

// BarsOf is an option for horizontal bars, one group for each label; on a logarithmic
// scale if the values span decades.
func BarsOf(format Format, labels []string, series []Series, log bool) Option {
	label := "fn:label"
	if format == Numbers {
		label = "fn:numberLabel"
	}
	axis := "value"
	if log {
		axis = "log"
	}
	var bars []any
	for _, s := range series {
		values := make([]any, len(s.Values))
		for i, v := range s.Values {
			if v > 0 || !log && v == 0 {
				values[i] = v
			}
		}
		bars = append(bars, Option{
			"type": "bar", "name": s.Name, "data": values, "barMaxWidth": 18,
			"label": Option{"show": true, "position": "right", "formatter": label},
		})
	}
	o := Option{
		"grid":    Option{"left": 8, "right": 70, "top": 34, "bottom": 8, "containLabel": true},
		"xAxis":   Option{"type": axis, "axisLabel": Option{"formatter": format}},
		"yAxis":   Option{"type": "category", "data": labels, "inverse": true, "axisTick": Option{"show": false}},
		"series":  bars,
		"tooltip": Option{"trigger": "axis", "axisPointer": Option{"type": "shadow"}, "valueFormatter": format},
	}
	if len(series) > 1 {
		o["legend"] = Option{"top": 0}
	}
	return o
}

// A Series is the values of one name, in the order of the labels. A value of zero
// or less is left out of a logarithmic plot.
type Series struct {
	Name   string
	Values []float64
}

// A Curve is points of x and y.
type Curve struct {
	Name   string
	Points [][2]float64
}

// Distribution is an option for curves over durations in nanoseconds on a
// logarithmic axis: of each curve, which part of the values (in percent) is above
// the duration. Tails show where they are of interest: on a logarithmic scale.
func Distribution(curves []Curve, x string) Option {
	var lines []any
	for i, c := range curves {
		lines = append(lines, Option{"type": "line", "step": "end", "name": c.Name, "data": c.Points, "showSymbol": false,
			"lineStyle": Option{"width": 2, "type": dash(i)}})
	}
	return Option{
		"grid":   Option{"left": 8, "right": 24, "top": 58, "bottom": 28, "containLabel": true},
		"legend": Option{"top": 0, "type": "scroll"},
		"xAxis": Option{"type": "log", "name": x, "nameLocation": "middle", "nameGap": 26,
			"axisLabel": Option{"formatter": "fn:duration"}, "minorTick": Option{"show": true}},
		"yAxis":   Option{"type": "log", "name": "% later than that", "nameTextStyle": Option{"align": "left"}, "max": 100, "min": 0.01},
		"series":  lines,
		"tooltip": Option{"trigger": "axis"},
	}
}

// colors is how many curves have a colour of their own (page.js).
const colors = 7

// dash is how the line of curve i is drawn: where colours come again, in another way.
func dash(i int) string { return []string{"solid", "dashed", "dotted"}[i/colors%3] }

// A Cell is one value of a Matrix, with what it says in words.
type Cell struct {
	Column, Row int
	Value       float64
	Text        string
}

// Matrix is an option for a heat map.
func Matrix(columns, rows []string, cells []Cell, max float64) Option {
	data := make([][4]any, len(cells))
	for i, c := range cells {
		data[i] = [4]any{c.Column, c.Row, c.Value, c.Text}
	}
	few := len(columns)*len(rows) <= 256
	return Option{
		"grid":  Option{"left": 8, "right": 24, "top": 12, "bottom": 56, "containLabel": true},
		"xAxis": Option{"type": "category", "data": columns},
		"yAxis": Option{"type": "category", "data": rows, "inverse": true},
		"visualMap": Option{"min": 0, "max": max, "calculable": false, "orient": "horizontal", "left": "center", "bottom": 0, "formatter": "fn:duration",
			"dimension": 2, "inRange": Option{"color": []string{"#e8f1fb", "#7ba7e0", "#2458c5", "#5a1a86", "#c0182b"}}},
		"series":  []any{Option{"type": "heatmap", "data": data, "label": Option{"show": few, "formatter": "fn:cell"}}},
		"tooltip": Option{"formatter": "fn:cell"},
	}
}

// LogMatrix is a [Matrix] of durations in nanoseconds, of 1 ns at least, whose
// colours are on a logarithmic scale.
func LogMatrix(columns, rows []string, cells []Cell) Option {
	logs := make([]Cell, len(cells))
	least, most := math.Inf(1), math.Inf(-1)
	for i, c := range cells {
		c.Value = math.Log10(max(c.Value, 1))
		least, most = min(least, c.Value), max(most, c.Value)
		logs[i] = c
	}
	if len(cells) == 0 {
		least, most = 0, 1
	}
	o := Matrix(columns, rows, logs, most)
	scale := o["visualMap"].(Option)
	scale["min"], scale["formatter"] = least, "fn:decade"
	return o
}
