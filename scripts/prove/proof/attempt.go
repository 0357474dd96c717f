package proof

import (
	"fmt"
	"sync"
)

// ended is what ends an attempt.
type ended struct{ error }

// Must ends the attempt that it is called in, if there is an error, as testing.T's Fatal ends a test. It is for the
// goroutine that Attempt or AtOnce calls.
func Must(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// Attempt calls do, and returns the error that has ended it. A panic is one.
func Attempt(do func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case ended:
			err = v.error
		default:
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	do()
	return nil
}

// AtOnce calls do n times at one moment, each in a goroutine of its own, and ends the attempt that it is called in with
// the first error that has ended one of them.
func AtOnce(n int, do func(i int)) {
	begin, errs := make(chan struct{}), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-begin
			errs[i] = Attempt(func() { do(i) })
		})
	}
	close(begin)
	all.Wait()
	for _, err := range errs {
		Must(err)
	}
}
