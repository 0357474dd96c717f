package load

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/wait"
)

// sampler reads a worker's memory once a second.
type sampler struct {
	began time.Time
	mib   []float64
	at    []float64 // minutes since the sampler started
	done  sync.WaitGroup
	end   context.CancelFunc
}

func sample(ctx context.Context, p *process) *sampler {
	s := &sampler{began: time.Now()}
	ctx, s.end = context.WithCancel(ctx)
	s.done.Go(func() {
		for wait.For(ctx, time.Second) == nil {
			s.mib, s.at = append(s.mib, rss(p.PID())), append(s.at, time.Since(s.began).Minutes())
		}
	})
	return s
}

// stop ends the sampling; the figures can be read from then on.
func (s *sampler) stop() { s.end(); s.done.Wait() }

func (s *sampler) max() float64 {
	if len(s.mib) == 0 {
		return 0
	}
	return slices.Max(s.mib)
}

// slope returns the growth of the memory in MiB a minute after the warm-up, the first third, by linear regression.
func (s *sampler) slope() float64 {
	x, y := s.at[len(s.at)/3:], s.mib[len(s.mib)/3:]
	mx, my := mean(x), mean(y)
	var xy, xx float64
	for i := range x {
		xy, xx = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx)
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}

// each returns one sample for each of n equal parts of the time, to show the curve.
func (s *sampler) each(n int) []float64 {
	out := []float64{}
	for i := range n {
		if len(s.mib) > 0 {
			out = append(out, s.mib[i*len(s.mib)/n])
		}
	}
	return out
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, f := range v {
		sum += f
	}
	return sum / float64(max(len(v), 1))
}

// rest waits until unused connections are closed, and returns the number of the worker's goroutines. It returns as soon
// as the number is at most enough, or after half a minute.
func rest(ctx context.Context, p *process, enough int) int {
	http.DefaultClient.CloseIdleConnections()
	for deadline := time.Now().Add(30 * time.Second); ; {
		n, err := p.goroutines(ctx)
		if proof.Must(err); n <= enough || time.Now().After(deadline) {
			return n
		}
		proof.Must(wait.For(ctx, 500*time.Millisecond))
	}
}

// calm returns the smallest number of goroutines that an idle worker has within a few seconds.
func calm(ctx context.Context, p *process) (least int) {
	http.DefaultClient.CloseIdleConnections()
	for range 6 {
		n, err := p.goroutines(ctx)
		if proof.Must(err); least == 0 || n < least {
			least = n
		}
		proof.Must(wait.For(ctx, 500*time.Millisecond))
	}
	return least
}
