package attach

import (
	"sync"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// position is the command of an action that is shown. An action is one command, or a list of commands that run one
// after the other. Only the host knows which, because the commands of a list have journals with other names.
type position struct {
	action string

	mu   sync.Mutex
	list int // the number of a list's command, from 1; 0: the action's only command
}

// id returns the name of the command's journal.
func (p *position) id() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list == 0 {
		return p.action
	}
	return supervisor.InList(p.action, p.list-1)
}

// inList reports whether the command is in a list, or is currently looked for there.
func (p *position) inList() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list > 0
}

// other switches between the two possible journals of a first command that the host does not know: the action's own,
// and the first of its list.
func (p *position) other() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list <= 1 {
		p.list = 1 - p.list
	}
}

// next moves to the next command of the list after a result. It returns false if there is no next command.
func (p *position) next(res supervisor.Result) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list == 0 || res.Exit != 0 {
		return false
	}
	p.list++
	return true
}
