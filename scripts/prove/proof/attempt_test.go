package proof

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestAttempt(t *testing.T) {
	clouds := errors.New("clouds")
	for name, c := range map[string]struct {
		do   func()
		says string
	}{
		"nothing":        {func() { Must(nil) }, ""},
		"an error":       {func() { Must(clouds); t.Error("Must returned") }, "clouds"},
		"a panic":        {func() { panic("rain") }, "panic: rain"},
		"one of several": {func() { AtOnce(3, func(i int) { Must([]error{nil, clouds, nil}[i]) }) }, "clouds"},
	} {
		if err := Attempt(c.do); (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Attempt(func() { Must(clouds) }); !errors.Is(err, clouds) {
		t.Errorf("a different error: %v", err)
	}
	var n atomic.Int64
	AtOnce(20, func(i int) { n.Add(int64(i)) })
	if n.Load() != 190 {
		t.Errorf("calls: %d", n.Load())
	}
}
