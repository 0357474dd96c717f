package blob

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/countersign-run/countersign/shared/store"
)

// Memory is a [Store] in memory. The zero value is empty and ready to use.
type Memory struct {
	mu      sync.Mutex
	objects map[string][]byte
}

// Create implements [Store].
func (m *Memory) Create(ctx context.Context, name string, data []byte) error {
	return m.with(ctx, "create", name, data, func() error {
		if _, ok := m.objects[name]; !ok {
			m.objects[name] = bytes.Clone(data)
		}
		return nil
	})
}

// Read implements [Store].
func (m *Memory) Read(ctx context.Context, name string) (data []byte, err error) {
	err = m.with(ctx, "read", name, nil, func() error {
		found, ok := m.objects[name]
		if !ok {
			return ErrGone
		}
		data = bytes.Clone(found)
		return nil
	})
	return data, err
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, name string) error {
	return m.with(ctx, "delete", name, nil, func() error {
		delete(m.objects, name)
		return nil
	})
}

// with checks the call, and calls do while no other call uses the objects.
func (m *Memory) with(ctx context.Context, method, name string, data []byte, do func() error) error {
	err := Check(name, data)
	if cause := ctx.Err(); cause != nil {
		err = errors.Join(err, store.Interrupted("blob: "+method, cause))
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[string][]byte{}
	}
	return do()
}
