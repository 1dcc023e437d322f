// Package spelling finds the existing name that a misspelt one probably stands for. A leaf.
package spelling

import "strings"

// Nearest is the known name that differs least from name, and "" when none is near. Case, and whether words are joined
// by _ or -, do not count.
func Nearest(name string, known []string) string {
	best, found := max(2, len(name)/3)+1, ""
	for _, k := range known {
		if d := distance(fold(name), fold(k)); d < best {
			best, found = d, k
		}
	}
	return found
}

func fold(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "_", "-")
}

// distance counts the letters to insert, delete, replace or swap with their neighbour to turn a into b. Long names are
// not compared.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return len(a) + len(b)
	}
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
