package journal

import (
	"encoding/json"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// pageOrigin is the origin of a page's text about itself. Such text is private, like everything that a page shows its
// user.
const pageOrigin = "what the page says"

// stateOrigin returns the origin of the repository state that was read when a session began.
func stateOrigin(s *run.Session) string {
	return s.Repo.String() + " itself: its files, README and AGENT.md"
}

// readingOf describes the result of an untrusted call, and whether it is private. Content of the session's repository
// is as private as the repository. Content of another repository counts as private unless it is known to be public.
// Content that was read with the user's account, in a session about a private repository, or by the user's page is
// private.
func readingOf(ex *Execution, s *run.State, c *run.ProposedCall, result json.RawMessage) (is tool.Reading,
	private bool) {
	t := ex.Tools[c.Tool]
	if t == nil {
		return tool.Reading{Origin: "a result of " + c.Tool}, c.Place != tool.Place{} || s.Input.OfPage(c.Tool)
	}
	is = t.Reading(c.Args, result)
	switch {
	case is.Public:
		return is, false
	case is.Repository == "":
		return is, t.Placed() || s.Input.Session != nil && s.Input.Session.Private
	case s.Input.Session != nil && RepositoryURL(s, is.Repository) == string(s.Input.Session.Repo):
		return is, s.Input.Session.Private
	}
	return is, true
}

// RepositoryURL returns the address of a repository that a tool names as owner/name. The session's own repository has
// the address in the session; any other is on GitHub.
func RepositoryURL(s *run.State, name string) string {
	if in := s.Input.Session; in != nil && strings.EqualFold(in.Repo.String(), name) {
		return string(in.Repo)
	}
	return "https://github.com/" + name
}

// firstReading returns the first text of strangers that the run read, or nil. The run's answer may contain such text.
func firstReading(tx *Tx) *run.Reading {
	in := tx.State.Input
	if in.Session != nil && in.Session.State != "" {
		return &run.Reading{Origin: stateOrigin(in.Session), Private: in.Session.Private}
	}
	var first *run.Reading
	note := func(r run.Reading) {
		if first == nil {
			first = &r
		}
		first.Private = first.Private || r.Private
	}
	if in.Via != nil {
		note(run.Reading{Origin: in.Via.Origin()})
	}
	if len(in.PageContext) > 0 {
		note(run.Reading{Origin: pageOrigin, Private: true})
	}
	for _, m := range in.History {
		if m.Read != nil {
			note(*m.Read)
		}
	}
	for _, a := range tx.State.Actions {
		if a.Untrusted && (a.Result != nil || a.Error != nil) {
			is, private := readingOf(tx.Ex, tx.State, &a.ProposedCall, a.Result)
			note(run.Reading{Origin: is.Origin, Private: private})
		}
	}
	return first
}
