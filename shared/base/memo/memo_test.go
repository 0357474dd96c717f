package memo_test

import (
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/base/memo"
)

// TestCache compares a cache with a list of keys in the order of their last use. The cache must hold the half most
// recently used keys, may hold up to twice as many, and returns the value that was put last.
func TestCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.IntRange(1, 5).Draw(t, "half")
		c := memo.New[int, int](half)
		var used []int // keys, oldest first
		last := map[int]int{}
		use := func(key int) {
			used = append(slices.DeleteFunc(used, func(k int) bool { return k == key }), key)
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key, value := rapid.IntRange(0, 20).Draw(t, "key"), rapid.Int().Draw(t, "value")
				c.Put(key, value)
				last[key] = value
				use(key)
			},
			"get": func(t *rapid.T) {
				key := rapid.IntRange(0, 20).Draw(t, "key")
				got, ok := c.Get(key)
				if ok && got != last[key] {
					t.Fatalf("%d is %d, want %d", key, got, last[key])
				}
				at := slices.Index(used, key)
				if fresh := at >= 0 && at >= len(used)-half; fresh && !ok {
					t.Fatalf("%d is forgotten among %v", key, used)
				}
				if ok && at < 0 {
					t.Fatalf("%d was never put", key)
				}
				if ok {
					use(key)
				}
			},
		})
		held := 0
		for key := range 21 {
			if _, ok := c.Get(key); ok {
				held++
			}
		}
		if held > 2*half {
			t.Fatalf("%d values are held, in halves of %d", held, half)
		}
	})
}

func TestConcurrently(t *testing.T) {
	c := memo.New[int, int](10)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 1000 {
				c.Put(n%30, n%30)
				if v, ok := c.Get(n * 7 % 30); ok && v != n*7%30 {
					t.Errorf("%d is %d", n*7%30, v)
				}
			}
		})
	}
	wg.Wait()
}
