package run

import (
	"encoding/json"
	"strings"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// About is a short statement of an action's effect and recipients, for its own user. It is made from the stored
// arguments, so it needs no tool.
type About struct {
	To    []string `json:"to,omitempty"`    // addresses; at most maxTo
	More  int      `json:"more,omitempty"`  // number of addresses that To leaves out
	What  string   `json:"what,omitempty"`  // one line: a subject, a title or a command
	Where string   `json:"where,omitempty"` // the repository, account or host that the action acts on
	State Came     `json:"state"`
}

// Came is the progress or outcome of an action.
type Came string

// The values of Came.
const (
	CameDone     Came = "done"
	CameFailed   Came = "failed" // not done, or with an unknown outcome
	CameRejected Came = "rejected"
	CameWaits    Came = "waiting"
	CameRuns     Came = "running"
)

// AllCame lists the values of Came.
var AllCame = []Came{CameDone, CameFailed, CameRejected, CameWaits, CameRuns}

// Limits of an About: the number of addresses, and the bytes of a text.
const (
	maxTo    = 5
	maxAbout = 200
)

// saysWhat lists the arguments that describe a call, the most specific first. saysWhom lists the arguments with
// recipients.
var (
	saysWhat = []string{"subject", "summary", "title", "command", "name", "path", "branch", "query", "url"}
	saysWhom = []string{"to", "cc", "bcc", "attendees"}
)

// About returns a short description of the action.
func (a *Action) About() About {
	about := About{Where: line(a.Place.Name), State: a.came()}
	var args map[string]json.RawMessage
	if json.Unmarshal(a.Args, &args) != nil { // refused arguments are not stored
		return about
	}
	text := func(name string) (s string) {
		_ = json.Unmarshal(args[name], &s) // a value of another type has no short form
		return line(s)
	}
	for _, name := range saysWhom {
		var some []string
		_ = json.Unmarshal(args[name], &some) // as above
		about.To = append(about.To, some...)
	}
	about.More = max(0, len(about.To)-maxTo)
	about.To = about.To[:len(about.To)-about.More]
	for i, to := range about.To {
		about.To[i] = line(to)
	}
	for _, name := range saysWhat {
		if about.What = text(name); about.What != "" {
			break
		}
	}
	if owner, repo := text("owner"), text("repo"); repo != "" {
		about.Where = strings.TrimPrefix(owner+"/"+repo, "/")
	}
	return about
}

func line(s string) string {
	shown, _ := visible.Line(clip.Text(strings.Join(strings.Fields(s), " "), maxAbout))
	return shown
}

func (a *Action) came() Came {
	switch {
	case a.Status == ActionCompleted:
		return CameDone
	case a.Status == ActionRejected:
		return CameRejected
	case a.Waiting():
		return CameWaits
	case a.Status == ActionFailed:
		return CameFailed
	}
	return CameRuns
}
