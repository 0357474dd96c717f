package command

import (
	"io"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// flushEvery is how long the last part of a line is held back because a secret may have started in it.
const flushEvery = 250 * time.Millisecond

// printed is the output of a command. It is passed on without secrets as it arrives, and stored for the result.
type printed struct {
	filter *obs.SecretFilter
	stop   chan struct{}
	over   sync.Once
	done   chan struct{}

	mu   sync.Mutex
	kept supervisor.Kept
}

func newPrinted(to io.Writer) *printed {
	p := &printed{stop: make(chan struct{}), done: make(chan struct{})}
	p.filter = obs.NewSecretFilter(io.MultiWriter(to, (*keep)(p)))
	go p.flush()
	return p
}

// Write implements [io.Writer].
func (p *printed) Write(b []byte) (int, error) { return p.filter.Write(b) }

// flush passes on an unfinished line, such as a question.
func (p *printed) flush() {
	defer close(p.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		_ = p.filter.Flush() // the command continues without a reader of its output
	}
}

// close passes on the remaining output.
func (p *printed) close() {
	p.over.Do(func() {
		close(p.stop)
		<-p.done
		_ = p.filter.Close()
	})
}

// keep collects the filtered output.
type keep printed

func (k *keep) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept.Write(b)
}

// result returns the result of the command that has printed this, with at most limit bytes of output.
func (p *printed) result(res supervisor.Result, limit int) Result {
	p.close()
	text, cut := p.text(limit)
	return Result{Output: text, ExitCode: res.Exit, Truncated: cut, TimedOut: res.TimedOut, Cwd: res.Cwd,
		DurationMs: res.Took.Milliseconds(), LeftBehind: res.Left, Ended: programs(res.Ended), Asked: res.Asked}
}

// text returns the output for the model and for the card. It removes secrets once more, because removed control
// sequences may have split a secret.
func (p *printed) text(limit int) (text string, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	raw, cut := p.kept.Bytes()
	text, more := supervisor.Text(raw, limit)
	return obs.RemoveSecrets(text), cut || more
}
