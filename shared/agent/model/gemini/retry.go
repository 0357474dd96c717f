package gemini

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
)

// firstWait is the maximum first wait. The maximum doubles with each attempt.
const firstWait = time.Second

// wait sleeps before the next attempt. It returns the attempt's error if another attempt cannot succeed, or would begin
// after ctx's deadline.
func (m *Model) wait(ctx context.Context, attempt int, f *failure) error {
	if !f.again || attempt == MaxAttempts {
		return f.fault
	}
	d := m.backoff(attempt, f.after)
	deadline, bounded := ctx.Deadline()
	if d > MaxWait || bounded && !m.cfg.Now().Add(d).Before(deadline) {
		return f.fault.After(d)
	}
	if m.cfg.Sleep(ctx, d) != nil {
		return model.FromContext(ctx)
	}
	return nil
}

// backoff returns an exponential wait with full jitter
// (aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter), added to the wait that the service asked for.
func (m *Model) backoff(attempt int, asked time.Duration) time.Duration {
	return asked + time.Duration(m.cfg.Jitter()*float64(firstWait<<(attempt-1)))
}
