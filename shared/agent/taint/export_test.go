package taint

import (
	"sync"
	"sync/atomic"
)

// Slowly is [Normalize] without the shortcut that folds letters one by one.
func Slowly(s string) string { return squeezed(folded(s)) }

// Disguised returns the form in which disguised texts are compared.
func Disguised(s string) string { return disguised(s, Normalize(s), nil) }

// CountReadings counts the readings that are made until the returned function is called.
func CountReadings() (stop func() (made, skeletons int)) {
	var made, skeletons atomic.Int64
	makeReading = func(s string) *reading {
		made.Add(1)
		r := newReading(s)
		hidden := r.hidden
		r.hidden = sync.OnceValue(func() string {
			skeletons.Add(1)
			return hidden()
		})
		return r
	}
	return func() (int, int) {
		makeReading = newReading
		return int(made.Load()), int(skeletons.Load())
	}
}
