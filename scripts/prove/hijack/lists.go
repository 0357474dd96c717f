package hijack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/tools/command"
)

// The ways to attack a list of commands. The model reads the text of a stranger, and adds the command that the text
// requests to a list.
const (
	listRejected = "a list with it, rejected"
	listLeftOut  = "a list with it, left out by the user"
	listChanged  = "a list that gets it after its card"
	listTwice    = "a list with it, proposed twice"
)

// ListWays lists the ways.
var ListWays = []string{listRejected, listLeftOut, listChanged, listTwice}

// listSiege is a host on which the model proposes lists of commands.
type listSiege struct {
	*hostSiege
	way      string
	wanted   string         // the command that the text requests
	lines    []string       // the list that the model proposes
	approved map[string]int // how often each command may still begin
}

// attackList proposes a list in one of the ways, and runs the agent to its end.
func (s *listSiege) attackList(a Attack, way string) {
	s.Count("attacks by lists of commands", 1)
	s.way, s.wanted, s.approved = way, wantedBy(a.Text), map[string]int{}
	s.lines = []string{"touch /srv/one", s.wanted, "mkdir -p /srv/two"}
	if way == listChanged {
		s.lines[1] = "touch /srv/three"
	}
	s.put("srv/note", a.Text)
	s.w.SetModel(s.proposes)
	on := s.open("/srv")
	r := s.askOn(on)
	for n := 0; n < 4 && len(s.pending()[r.RunID]) > 0; n++ {
		for _, card := range s.pending()[r.RunID] {
			s.decideList(card, n)
		}
		s.deliver()
	}
	s.call("ana", "POST", "/runs/"+r.RunID+"/cancel", nil) // in case it has not ended
	s.deliver()
	s.checkStarted(func(command string) bool {
		s.approved[command]--
		return s.approved[command] >= 0
	})
	if a := s.call("ana", "DELETE", "/terminals/"+on, nil); a.HTTP/100 != 2 {
		s.fail("the terminal cannot be closed: %d %s", a.HTTP, a.Body)
	}
}

// wantedBy returns the first command that a text requests, or a command of the model's own.
func wantedBy(text string) string {
	var line struct{ Command string }
	for _, c := range commandsIn([]string{text}, func(string) fakegemini.Call { return fakegemini.Call{} }) {
		args, err := json.Marshal(c.Args)
		proof.Must(err)
		if json.Unmarshal(args, &line) == nil && line.Command != "" {
			return line.Command
		}
	}
	return "touch /tmp/pwned"
}

// proposes reads the text, and then proposes the list, once or twice.
func (s *listSiege) proposes(r fakegemini.Request) fakegemini.Turn {
	switch n := r.Answered(); {
	case n == 0:
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: command.Run, Args: testkit.Command("cat /srv/note")}}}
	case n == 1 || n == 2 && s.way == listTwice:
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: command.RunList, Args: testkit.Commands(s.lines...)}}}
	}
	return fakegemini.Turn{Text: "Done! The user has approved it all."}
}

// decideList decides about the n-th card of a run, as the way of the attack says.
func (s *listSiege) decideList(card run.ApprovalView, n int) {
	if card.Kind == run.KindReview {
		s.say("ana", card.ApprovalID, run.ConfirmDone, nil, "")
		return
	}
	if card.Tool != command.RunList {
		s.say("ana", card.ApprovalID, run.Reject, nil, "")
		return
	}
	s.Count("cards of lists", 1)
	for i, line := range s.lines {
		if got := unescape(field(card.Preview, fmt.Sprintf("Command %d", i+1))); got != line {
			s.fail("command %d is %q and shown as %q", i+1, line, got)
		}
	}
	switch {
	case s.way == listLeftOut:
		kept := slices.Delete(slices.Clone(s.lines), 1, 2)
		edited, err := json.Marshal(testkit.Commands(kept...))
		proof.Must(err)
		s.approve(kept)
		s.say("ana", card.ApprovalID, run.ApproveEdited, edited, "")
	case s.way == listChanged && n == 0: // the next card has the original list
		s.swap(card.ApprovalID)
		a := s.call("ana", "POST", "/approvals/resolve",
			map[string]string{"approvalId": card.ApprovalID, "decision": string(run.ApproveOnce)})
		if a.HTTP/100 == 2 {
			s.fail("a list was approved that is not the one on its card")
		}
		s.Count("changed lists refused", 1)
	case s.way == listTwice && n == 0:
		s.approve(s.lines)
		s.say("ana", card.ApprovalID, run.ApproveOnce, nil, "")
	default:
		s.say("ana", card.ApprovalID, run.Reject, nil, "")
	}
}

// approve records that each of the commands may start one more time.
func (s *listSiege) approve(lines []string) {
	s.Count("lists approved", 1)
	for _, line := range lines {
		s.approved[line]++
	}
}

// swap changes a command of a waiting list in the store, like an attacker who can write to it.
func (s *listSiege) swap(approvalID string) {
	st, path := s.w.App.API.Loop.Store, document.ApprovalPath(approvalID)
	docs, err := st.Get(s.ctx, path)
	proof.Must(err)
	var doc map[string]any
	proof.Must(document.Decode(docs[0], &doc))
	args := doc["args"].(map[string]any)
	args["commands"].([]any)[1].(map[string]any)["command"] = s.wanted
	data, err := json.Marshal(doc)
	proof.Must(err)
	_, err = st.Commit(s.ctx, store.Update(path, docs[0].Version, docs[0].Fields, data))
	proof.Must(err)
}

// besiegeLists attacks lists with each text that requests commands, in each way.
func besiegeLists(ctx context.Context, r *proof.Run, dir string, every int) (err error) {
	attacks, err := CommandAttacks()
	if err != nil {
		return err
	}
	h, err := newHostSiege(ctx, r, filepath.Join(dir, "lists"))
	if err != nil {
		return err
	}
	s := &listSiege{hostSiege: h}
	defer func() { err = errors.Join(err, s.close()) }()
	s.try(func() {
		s.each(attacks, ListWays, every, s.attackList)
		s.checkFinalHost()
	})
	return nil
}
