package supervisor_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/terminal/supervisor/supervisortest"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

func TestMain(m *testing.M) {
	realpart.AtOnce(5)
	leaktest.Main(m)
}

// TestOnSSHD runs the suite on OpenSSH's server, for each login shell, with the program that makes a terminal and
// without it.
func TestOnSSHD(t *testing.T) {
	t.Parallel()
	for _, h := range []struct {
		name, shell string
		path        func(sshd.T) string
		pty, bash   bool
	}{
		{"bash", "bash", nil, true, true},
		{"bash without script", "bash", func(t sshd.T) string { return sshd.Without(t, "script") }, false, true},
		{"dash", "dash", nil, true, true},
		{"dash without bash", "dash", func(t sshd.T) string { return sshd.Without(t, "bash") }, true, false},
		{"zsh", "zsh", nil, true, true},
		{"fish", "fish", nil, true, true},
		{"busybox", "busybox", nil, true, true},
		{"busybox alone", "busybox", sshd.Busybox, false, false},
	} {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting
			path := ""
			if h.path != nil {
				path = h.path(t)
			}
			s := sshd.Start(t, sshd.Options{Shell: h.shell, Path: path})
			supervisortest.Run(t, supervisortest.Host{PTY: h.pty, Bash: h.bash, Left: left(s),
				Dial: func(testing.TB) supervisor.Conn { return s.Dial() }})
		})
	}
}

// left returns the processes that run on the host.
func left(s *sshd.Server) func() []string {
	return func() (all []string) {
		for _, p := range s.Processes() {
			all = append(all, p.String())
		}
		return all
	}
}
