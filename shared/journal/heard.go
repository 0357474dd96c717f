package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/taint"
	"github.com/countersign-run/countersign/shared/tool"
)

// heard is what the model of a run was told up to its newest turn, by who has said it. It grows with the run's events.
type heard struct {
	record *taint.Record
	events int                          // that it has
	calls  map[string]*run.ProposedCall // by the action's id, with the arguments that the model wrote
	later  []later                      // what the model is told from the next turn on
	plan   json.RawMessage              // that was proposed last
}

// later is what a turn has brought: the model wrote its other calls before it was told.
type later struct {
	turn int
	tell func(*taint.Record)
}

// Heard returns what the run's user has said and what the model has read before the newest turn, also in earlier runs
// of the thread, as far as the model is told of them. It is asked for only where a call would be carried out unasked,
// or is shown to its user, and made once in an execution.
func Heard(tx *Tx) (*taint.Record, error) {
	h := tx.Ex.heard
	if h == nil {
		h = &heard{record: &taint.Record{}, calls: map[string]*run.ProposedCall{}}
		if err := h.begin(tx); err != nil {
			return nil, err
		}
		tx.Ex.heard = h
	}
	for ; h.events < len(tx.Ex.Events); h.events++ {
		h.add(tx, tx.Ex.Events[h.events])
	}
	h.later = slices.DeleteFunc(h.later, func(l later) bool {
		known := l.turn < len(tx.State.Turns)
		if known {
			l.tell(h.record)
		}
		return known
	})
	return h.record, nil
}

// begin adds what the run began with.
func (h *heard) begin(tx *Tx) error {
	in := tx.State.Input
	h.asked(in)
	h.served(tx)
	h.page(in)
	for _, m := range in.History {
		switch {
		case m.Role == run.RoleUser && m.Read == nil:
			h.record.Say(m.OwnWords())
		case m.Read != nil:
			h.record.Read(taint.Source{Origin: "an earlier answer, after " + m.Read.Origin, Private: m.Read.Private,
				Text: m.OwnWords() + "\n" + m.Outcome})
		}
	}
	for _, c := range in.Contents {
		h.content(tx, c)
	}
	if s := in.Session; s != nil {
		h.record.Say(string(s.Repo))
		h.repository(s)
	}
	if in.Told == nil {
		return nil
	}
	return h.thread(tx, *in.Told)
}

// asked adds what a run was asked to do, which are its user's words unless another program's agent has asked.
func (h *heard) asked(in run.Input) {
	if in.Via != nil {
		h.record.Read(taint.Source{Origin: in.Via.Origin(), Text: in.Prompt})
		return
	}
	h.record.Say(in.Prompt)
}

// served adds what strangers say of the tools that the run's agent and its page have: its model is told.
func (h *heard) served(tx *Tx) {
	for _, its := range []tool.Set{sessionTools(tx.Ex, tx.Run), pageTools(tx.Ex, tx.State.Input)} {
		for _, name := range its.Names() {
			if t := its[name]; t.Source != "" {
				h.record.Read(taint.Source{Origin: "what is said of the tool " + name,
					Text: strings.Join(append(tool.Strings(t.Schema), t.Description), "\n")})
			}
		}
	}
}

// page adds what the run's page says of itself. Nobody knows whose words it shows, and a value may be JSON.
func (h *heard) page(in run.Input) {
	for _, c := range in.PageContext {
		words := append(tool.Strings(json.RawMessage(c.Value)), c.Description, c.Value)
		h.record.Read(taint.Source{Origin: pageOrigin, Private: true, Text: strings.Join(words, "\n")})
	}
}

// repository adds what a session's repository said of itself when the session began. AGENT.md, too, is information.
func (h *heard) repository(s *run.Session) {
	own, open := s.Parts()
	if own != "" {
		h.record.Read(taint.Source{Origin: stateOrigin(s), Text: own, Private: s.Private, Repository: string(s.Repo)})
	}
	if open != "" {
		h.record.Read(taint.Source{Origin: "the issues and pull requests of " + s.Repo.String(), Text: open,
			Private: s.Private})
	}
}

// thread adds what the run is told of its thread's contents. Nobody knows whose words a summary has, so they are
// strangers'.
func (h *heard) thread(tx *Tx, told run.Told) error {
	if text := strings.TrimSpace(told.Summary + "\n" + told.Carried); text != "" {
		h.record.Read(taint.Source{Origin: "the summary of what came before in this conversation", Text: text})
	}
	entries, err := toldIn(tx, told)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Raw != nil {
			h.content(tx, e.Raw)
			continue
		}
		s, err := endedIn(tx, e.Run)
		if err != nil {
			return err
		}
		h.asked(s.Input)
		for _, a := range s.Actions {
			h.read(tx, &a.ProposedCall, a.Result, a.Error)
		}
	}
	return nil
}

// content adds one of Gemini's contents: what the user said, and what tools returned that is a stranger's. What the
// server has put down in the user's role is neither.
func (h *heard) content(tx *Tx, raw json.RawMessage) {
	var c struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	}
	if json.Unmarshal(raw, &c) != nil || c.Role != string(model.User) {
		return
	}
	for _, p := range c.Parts {
		if p.Text != "" && !strings.HasPrefix(p.Text, "[record ") {
			h.record.Say(p.Text)
		}
	}
	responses, err := model.Responses(raw)
	if err != nil { // words
		return
	}
	for _, r := range responses {
		if t := tx.Ex.Tools[r.Name]; r.Untrusted {
			h.record.Read(taint.Source{Origin: "an earlier result of " + r.Name, Private: t != nil && t.Placed(),
				Text: strings.Join(append(tool.Strings(r.Result), r.Error), "\n")})
		}
	}
}

// add adds what an event says.
func (h *heard) add(tx *Tx, e run.Event) {
	c := h.calls[e.ActionID]
	switch {
	case e.Proposed != nil:
		h.calls[e.ActionID] = e.Proposed
	case e.Planned != nil && e.Planned.Proposed != nil:
		h.plan = e.Planned.Proposed.Plan
	case e.Planned != nil && e.Planned.Confirmed != nil:
		h.confirm(e.Planned.Confirmed.Plan)
	case c == nil:
	case e.Wait != nil && e.Wait.Args != nil: // what a later release made of them
		now := *c
		now.Args = e.Wait.Args
		h.calls[e.ActionID] = &now
	case e.Decided != nil:
		said := append(edited(c.Args, e.Decided.EditedArgs), e.Decided.Comment)
		h.from(c.Turn, func(r *taint.Record) { say(r, said) })
	case e.Finished != nil:
		h.from(c.Turn, func(*taint.Record) { h.read(tx, c, e.Finished.Result, e.Finished.Error) })
	}
}

func (h *heard) from(turn int, tell func(*taint.Record)) {
	h.later = append(h.later, later{turn, tell})
}

// confirm adds the plan that the user has confirmed, as they have edited it: every word of it is theirs now.
func (h *heard) confirm(changed json.RawMessage) {
	if changed != nil {
		h.plan = changed
	}
	say(h.record, tool.Strings(h.plan))
}

func say(r *taint.Record, words []string) {
	for _, w := range words {
		if w != "" {
			r.Say(w)
		}
	}
}

// edited returns the strings that a user has put into the arguments: what they left as it was is not their own.
func edited(before, after json.RawMessage) []string {
	if after == nil {
		return nil
	}
	was := tool.Strings(before)
	return slices.DeleteFunc(tool.Strings(after), func(s string) bool { return slices.Contains(was, s) })
}

// read adds what a call has returned, if that is a stranger's.
func (h *heard) read(tx *Tx, c *run.ProposedCall, result json.RawMessage, failed *run.ErrorInfo) {
	if !c.Untrusted {
		return
	}
	is, private := readingOf(tx.Ex, tx.State, c, result)
	src := taint.Source{Origin: is.Origin, Private: private}
	if is.File {
		src.Repository = RepositoryURL(tx.State, is.Repository)
	}
	texts := tool.Strings(result)
	if failed != nil {
		texts = append(texts, failed.Message)
	}
	src.Text = strings.Join(texts, "\n")
	h.record.Read(src)
}

// toldIn is [ToldContents] for a transition.
func toldIn(tx *Tx, told run.Told) ([]run.Content, error) {
	if told.Last < max(told.First, 1) {
		return nil, nil
	}
	var t run.Thread
	path := document.ThreadPath(tx.Run.ThreadID)
	if _, err := tx.Doc(path, &t); err != nil {
		return nil, err
	}
	chunks, err := chunksIn(tx, t.Contents.Paths(path, run.ContentChunks, told.First, told.Last))
	if err != nil {
		return nil, err
	}
	return toldOf(t, told, chunks)
}

// endedIn is [EndedRun] for a transition.
func endedIn(tx *Tx, id string) (*run.State, error) {
	var r run.Run
	path := document.RunPath(id)
	if d, err := tx.Doc(path, &r); err != nil {
		return nil, err
	} else if !d.Exists() {
		return nil, fmt.Errorf("journal: run %s of the conversation is missing", id)
	}
	chunks, err := chunksIn(tx, r.Log.ChunkPaths(path, "events"))
	if err != nil {
		return nil, err
	}
	events, err := r.Log.All(chunks...)
	if err != nil {
		return nil, err
	}
	return run.Fold(events)
}

// chunksIn returns documents that never change, for a transition.
func chunksIn(tx *Tx, paths []string) (all []json.RawMessage, err error) {
	var missing errMissingDocs
	for _, p := range paths {
		d, read := tx.Ex.Docs[p]
		if !read && len(missing) < store.MaxReads-2 { // beside the user's document and the thread
			missing = append(missing, p)
		}
		all = append(all, d.Data)
	}
	if missing != nil {
		return nil, missing
	}
	return all, nil
}
