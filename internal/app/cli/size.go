package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"millrace/internal/app/sizing"
)

func sizeCommands() []command {
	return []command{
		of("size", "compute what a number of live streams and viewers needs",
			"Prints how many nodes a load needs, their network traffic and memory, the load on PostgreSQL and the "+
				"bucket, and which of these reaches its limit first. The figures are computed from measurements with "+
				"720p30 over RTMP, recorded, and viewers with low latency over HTTPS. Your encoders and players may "+
				"need more. Reads no settings.",
			&size{}, alone),
	}
}

// size prints what a load needs.
type size struct {
	load sizing.Load
	json bool
}

const mostStreams, mostViewers, mostOfNode = 1e6, 1e9, 1e5

func (s *size) flags(f *flags) {
	add(f, &s.load.Streams, number(0, mostStreams), "streams", "number", "1",
		"Live streams that are on air at the same time.")
	add(f, &s.load.Viewers, number(0, mostViewers), "viewers", "number", "0",
		"Viewers of all streams together.")
	add(f, &s.load.Mbit, amount, "bitrate", "number", "2.5", "Bit rate of a stream, in Mbit/s.")
	add(f, &s.load.Rungs, number(0, 10), "rungs", "number", "0",
		"Lower renditions of each stream that are encoded.")
	add(f, &s.load.Nodes, number(0, mostOfNode), "nodes", "number", "0", "Number of nodes; 0 means as few as possible.")
	add(f, &s.load.Cores, number(1, mostOfNode), "cores", "number", "8", "Processor cores of a node.")
	add(f, &s.load.Link, amount, "link", "number", "10", "Network of a node, in Gbit/s in each direction.")
	f.asJSON(&s.json)
}

// number parses a whole number in a range.
func number(least, most float64) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || float64(n) < least || float64(n) > most {
			return 0, fmt.Errorf("is no whole number from %.0f to %.0f", least, most)
		}
		return n, nil
	}
}

// amount parses a number above 0.
func amount(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n <= 0 || n > 1e5 {
		return 0, errors.New("is no number above 0, up to 100000")
	}
	return n, nil
}

func (s *size) run(_ context.Context, r *request) error {
	n := sizing.Of(s.load)
	if s.json {
		if err := json.NewEncoder(r.out).Encode(sizeJSON(n)); err != nil {
			return fmt.Errorf("print size: %w", err)
		}
		return nil
	}
	const gb, gbit = 1e9, 1e9
	tab := newTable(r.out)
	row := func(name, format string, values ...any) { tab.row(name, fmt.Sprintf(format, values...)) }
	row("nodes", "%d, each with %d cores and %.1f GB of memory", n.Nodes, s.load.Cores, n.Memory/gb)
	row("cores in use", "%.2f in total", n.Cores)
	row("network", "%.2f Gbit/s in, %.2f out, in total", n.In/gbit, n.Out/gbit)
	row("PostgreSQL", "%.2f cores, %.0f transactions a second, max_connections at least %d", n.Database.Cores,
		n.Database.Transactions, n.Database.Connections)
	row("rows written", "%.1f million a day, %.1f GB of WAL", n.Database.Rows/1e6, n.Database.WAL/gb)
	row("bucket", "%.1f GB and %.2f million PUT requests a day", n.Storage.Bytes/gb, n.Storage.Puts/1e6)
	for i, l := range n.Limits {
		name := ""
		if i == 0 {
			name = "first limit"
		}
		row(name, "%s, %.0f %% used: %s", l.Name, 100*l.Used, l.Do)
	}
	return tab.end()
}

// sizeLine is what a load needs as JSON.
type sizeLine struct {
	Nodes         int         `json:"nodes"`
	Cores         float64     `json:"cores"`
	Memory        float64     `json:"node_memory_bytes"`
	In            float64     `json:"network_in_bits_per_second"`
	Out           float64     `json:"network_out_bits_per_second"`
	DatabaseCores float64     `json:"database_cores"`
	Transactions  float64     `json:"database_transactions_per_second"`
	Rows          float64     `json:"database_rows_per_day"`
	WAL           float64     `json:"database_wal_bytes_per_day"`
	Connections   int         `json:"database_connections"`
	Puts          float64     `json:"storage_puts_per_day"`
	Stored        float64     `json:"storage_bytes_per_day"`
	Limits        []limitLine `json:"limits"` // the first limit first
}

type limitLine struct {
	Name string  `json:"name"`
	Used float64 `json:"used"`
	Do   string  `json:"do"`
}

func sizeJSON(n sizing.Need) sizeLine {
	out := sizeLine{
		Nodes: n.Nodes, Cores: n.Cores, Memory: n.Memory, In: n.In, Out: n.Out,
		DatabaseCores: n.Database.Cores, Transactions: n.Database.Transactions, Rows: n.Database.Rows,
		WAL: n.Database.WAL, Connections: n.Database.Connections, Puts: n.Storage.Puts, Stored: n.Storage.Bytes,
	}
	for _, l := range n.Limits {
		out.Limits = append(out.Limits, limitLine(l))
	}
	return out
}
