// Package memo keeps a bounded number of values that are costly to make and are asked for again and again.
package memo

import "sync"

// Cache holds values by their keys. It is bounded as two halves: a full newer one takes the place of the older, whose
// values are forgotten unless they were asked for again. It is safe for concurrent use, and is made by [New].
type Cache[K comparable, V any] struct {
	half int

	mu           sync.Mutex
	newer, older map[K]V
}

// New returns a cache that holds at most twice half values. The last half that were put or got are always among them.
func New[K comparable, V any](half int) *Cache[K, V] {
	return &Cache[K, V]{half: half, newer: map[K]V{}}
}

// Get returns the value of the key, if it is held.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.newer[key]
	if ok {
		return v, true
	}
	if v, ok = c.older[key]; ok {
		c.put(key, v)
	}
	return v, ok
}

// Put holds the value for the key, in the place of another.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, value)
}

func (c *Cache[K, V]) put(key K, value V) {
	if len(c.newer) >= c.half {
		c.newer, c.older = map[K]V{}, c.newer
	}
	c.newer[key] = value
}
