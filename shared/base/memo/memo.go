// Package memo caches a bounded number of values that are costly to compute.
package memo

import "sync"

// Cache holds values by their keys. It consists of two halves. When the newer half is full, it becomes the older half,
// and the previous older half is dropped. A value that is read moves to the newer half. Cache is safe for concurrent
// use. Create one with [New].
type Cache[K comparable, V any] struct {
	half int

	mu           sync.Mutex
	newer, older map[K]V
}

// New returns a cache with at most 2*half values. It always contains the last half values that were put or read.
func New[K comparable, V any](half int) *Cache[K, V] {
	return &Cache[K, V]{half: half, newer: map[K]V{}}
}

// Get returns the cached value of the key, and whether it was found.
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

// Put caches the value, and replaces an earlier value of the key.
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
