package page

// Histogram is an option for curves over durations in nanoseconds on a logarithmic
// axis: of each curve, which part of the values (in percent) is in the class that begins
// at the duration and ends at the next point's.
func Histogram(curves []Curve) Option {
	var lines []any
	for i, c := range curves {
		lines = append(lines, Option{"type": "line", "step": "end", "name": c.Name, "data": c.Points, "showSymbol": false,
			"lineStyle": Option{"width": 1.5, "type": dash(i)}, "areaStyle": Option{"opacity": 0.12}})
	}
	return Option{
		"grid":    Option{"left": 8, "right": 24, "top": 58, "bottom": 28, "containLabel": true},
		"legend":  Option{"top": 0, "type": "scroll"},
		"xAxis":   Option{"type": "log", "axisLabel": Option{"formatter": "fn:duration"}, "minorTick": Option{"show": true}},
		"yAxis":   Option{"type": "value", "name": "% of all", "nameTextStyle": Option{"align": "left"}, "min": 0},
		"series":  lines,
		"tooltip": Option{"trigger": "axis"},
	}
}
