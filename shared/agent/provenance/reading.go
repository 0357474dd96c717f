package provenance

import (
	"encoding/json"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// pageOrigin is the origin of a page's text about itself. Such text is private, like everything that a page shows its
// user.
const pageOrigin = "what the page says"

// earlierFile is the origin of a file of an earlier run.
const earlierFile = "a file of an earlier message"

// fileOrigin returns the origin of a file of the run's prompt.
func fileOrigin(f attachment.Stored) string { return "the file " + f.Name }

// madeOrigin returns the origin of a file that the model or a tool made. A stranger's text in it cannot be compared.
func madeOrigin(f attachment.Stored) string {
	if f.Tool != "" {
		return "the file " + f.Name + " of " + f.Tool
	}
	return "the file " + f.Name + " that the model made"
}

// noteOrigin returns the origin of a note that the model wrote after it had read text from strangers.
func noteOrigin(n run.Note) string { return "a note that was made after reading " + n.After }

// stateOrigin returns the origin of the repository state that was read when a session began.
func stateOrigin(s *run.Session) string {
	return s.Repo.String() + " itself: its files, README and AGENT.md"
}

// Reading describes the result of an untrusted call, and whether it is private. Content of the session's repository
// is as private as the repository. Content of another repository counts as private unless it is known to be public.
// Content that was read with the user's account, in a session about a private repository, or by the user's page is
// private.
func Reading(tools tool.Set, in run.Input, c *run.ProposedCall, result json.RawMessage) (is tool.Reading,
	private bool) {
	t := tools[c.Tool]
	if t == nil {
		return tool.Reading{Origin: "a result of " + c.Tool}, c.Place != tool.Place{} || in.OfPage(c.Tool)
	}
	is = t.Reading(c.Args, result)
	switch {
	case is.Public:
		return is, false
	case is.Repository == "":
		return is, t.Placed() || in.Session != nil && in.Session.Private
	case in.Session != nil && RepositoryURL(in, is.Repository) == string(in.Session.Repo):
		return is, in.Session.Private
	}
	return is, true
}

// RepositoryURL returns the address of a repository that a tool names as owner/name. The session's own repository has
// the address in the session; any other is on GitHub.
func RepositoryURL(in run.Input, name string) string {
	if s := in.Session; s != nil && strings.EqualFold(s.Repo.String(), name) {
		return string(s.Repo)
	}
	return "https://github.com/" + name
}

// First returns the first text of strangers that the run read, or nil. The run's answer may contain such text.
func First(tools tool.Set, s *run.State) *run.Reading {
	in := s.Input
	if in.Session != nil && in.Session.State != "" {
		private := in.Session.Private || in.FilesBefore || len(in.Files) > 0
		return &run.Reading{Origin: stateOrigin(in.Session), Private: private}
	}
	var first *run.Reading
	note := func(r run.Reading) {
		if first == nil {
			first = &r
		}
		first.Private = first.Private || r.Private
	}
	if in.DelegatedBy != nil {
		note(run.Reading{Origin: in.DelegatedBy.Origin()})
	}
	if len(in.PageContext) > 0 {
		note(run.Reading{Origin: pageOrigin, Private: true})
	}
	if in.FilesBefore {
		note(run.Reading{Origin: earlierFile, Private: true})
	}
	for _, f := range in.Files {
		note(run.Reading{Origin: fileOrigin(f), Private: true})
	}
	for _, f := range s.Made {
		note(run.Reading{Origin: madeOrigin(f), Private: true})
	}
	for _, m := range in.History {
		if m.Read != nil {
			note(*m.Read)
		}
	}
	for _, n := range in.Notes {
		if n.After != "" {
			note(run.Reading{Origin: noteOrigin(n), Private: true})
		}
	}
	for _, a := range s.Actions {
		if a.Untrusted && (a.Result != nil || a.Error != nil) {
			is, private := Reading(tools, in, &a.ProposedCall, a.Result)
			note(run.Reading{Origin: is.Origin, Private: private})
		}
	}
	return first
}
