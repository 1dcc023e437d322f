package streams

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	// chartWidth and chartHeight are the units of a chart's box; browsers stretch it.
	chartWidth, chartHeight = 600, 96
	chartSpan               = 10 * time.Minute // what its width stands for, up to the newest point
	chartGap                = 30 * time.Second // between two points that no line joins
	// steady is how far values may be from one another, as a share of the largest, to be called so.
	steady = 0.1
)

// point is a value at a time.
type point struct {
	at time.Time
	v  float64
}

// chart is a measure over the last minutes as SVG path data (SVG 2, section 9.3).
type chart struct {
	Name, Now   string // Now is its newest value
	Label       string // it says in a sentence what the drawing shows
	Line, Area  string
	Top, Middle string // what the top and the middle of the box stand for
}

// draw makes a chart of at least one point, oldest first. text writes a value with its unit.
func draw(name string, points []point, text func(float64) string) chart {
	last := points[len(points)-1]
	for last.at.Sub(points[0].at) > chartSpan {
		points = points[1:]
	}
	low, high := span(points)
	top := scale(high)
	c := chart{
		Name: name, Now: text(last.v), Label: describe(name, points, low, high, text),
		Top: text(top), Middle: text(top / 2),
	}
	var line, area strings.Builder
	for _, run := range runs(points) {
		first := true
		var x, begin string
		for _, p := range run {
			x = coordinate(chartWidth * (1 - float64(last.at.Sub(p.at))/float64(chartSpan)))
			y := coordinate(chartHeight * (1 - p.v/top))
			if first {
				begin = x
				line.WriteString("M" + x + " " + y)
				area.WriteString("M" + x + " " + coordinate(chartHeight) + "L" + x + " " + y)
			} else {
				line.WriteString("L" + x + " " + y)
				area.WriteString("L" + x + " " + y)
			}
			first = false
		}
		if x == begin { // a single point is seen as a dot
			line.WriteString("h0")
		}
		area.WriteString("L" + x + " " + coordinate(chartHeight) + "Z")
	}
	c.Line, c.Area = line.String(), area.String()
	return c
}

// runs are the points that a line joins.
func runs(points []point) [][]point {
	var all [][]point
	begin := 0
	for i := range points {
		if i > 0 && points[i].at.Sub(points[i-1].at) > chartGap {
			all = append(all, points[begin:i])
			begin = i
		}
	}
	return append(all, points[begin:])
}

func span(points []point) (low, high float64) {
	low, high = points[0].v, points[0].v
	for _, p := range points {
		low, high = min(low, p.v), max(high, p.v)
	}
	return low, high
}

// scale is a round number a little above the largest value.
func scale(high float64) float64 {
	if high <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(high)))
	for _, n := range []float64{1, 2, 4, 6, 8, 10} {
		if n*unit >= high*1.1 {
			return n * unit
		}
	}
	return 20 * unit
}

func coordinate(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// describe says what a chart shows.
func describe(name string, points []point, low, high float64, text func(float64) string) string {
	last := points[len(points)-1]
	sentence := name + ": " + text(last.v) + " now"
	long := last.at.Sub(points[0].at)
	switch {
	case long <= 0:
		return sentence + "."
	case high-low <= high*steady:
		return sentence + ", steady in the last " + inWords(long) + "."
	}
	return sentence + ", between " + text(low) + " and " + text(high) + " in the last " + inWords(long) + "."
}

// inWords is a duration in words.
func inWords(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f seconds", d.Seconds())
	}
	return fmt.Sprintf("%.0f minutes", d.Minutes())
}
