package remote_test

import (
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestCheck checks a working host, and hosts with one fault each.
func TestCheck(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	p := newPool(t, remote.Times{})
	const answer = 300 * time.Millisecond
	hasty := newPool(t, remote.Times{Answer: answer})
	is, err := p.Check(t.Context(), *s.Host(), secret(s.Key))
	if err != nil || !strings.HasPrefix(is.OS, "Linux") || len(is.Shells) == 0 || is.Shells[0] != shell.Bash ||
		is.Home == "" {
		t.Errorf("%+v, %v", is, err)
	}
	odd := sshd.Start(t, sshd.Options{Config: []string{"ForceCommand echo CANARY; exit 1"}})
	other := *s.Host()
	other.ID, other.HostKeys = "host-2", pin(odd.HostKeys()...)
	for _, c := range []struct {
		name  string
		err   func() error
		class fault.Class
		code  fault.Code
	}{
		{"another key", func() error { _, err := p.Check(t.Context(), other, secret(s.Key)); return err },
			fault.Policy, remote.CodeKeyChanged},
		{"a login that is refused", func() error {
			h := *s.Host()
			h.ID = "host-3"
			_, err := p.Check(t.Context(), h, secret(newKey(t)))
			return err
		}, fault.Auth, remote.CodeLogin},
		{"a shell that runs nothing", func() error {
			h := *odd.Host()
			h.ID = "host-5"
			_, err := p.Check(t.Context(), h, secret(odd.Key))
			return err
		}, fault.Tool, remote.CodeRefused},
		{"nobody is there", func() error {
			h := *s.Host()
			h.ID, h.Port = "host-4", 1
			began := time.Now()
			_, err := hasty.Check(t.Context(), h, secret(s.Key))
			if took := time.Since(began); took < answer {
				t.Errorf("that is answered after %s", took)
			}
			return err
		}, fault.Tool, remote.CodeUnreachable},
	} {
		if err := c.err(); !fault.Is(err, c.class, c.code) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
