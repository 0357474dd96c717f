package proof

import (
	"fmt"
	"sync"
)

// ended is the panic value that ends an attempt.
type ended struct{ error }

// Must ends the attempt in which it is called if err is not nil, as testing.T's Fatal ends a test. Call it in the
// goroutine that Attempt or AtOnce starts.
func Must(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// Attempt calls do. It returns the error of Must or of a panic that ended it.
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

// AtOnce calls do n times concurrently, each in a separate goroutine. Then it ends the surrounding attempt with the
// first error that ended one of the calls.
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
