package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/localgoogle"
	"github.com/countersign-run/countersign/scripts/world"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/model/fakegemini"
	"github.com/countersign-run/countersign/shared/store"
)

// private runs a case of audit: something that must be in no log and no audit comes along, or somebody changes the audit.
func private(s *stage) (got, error) {
	if err := s.open(nil); err != nil {
		return got{}, err
	}
	for name, run := range map[string]func(string) error{
		"prompt": s.privatePrompt, "tool_error": s.privateFailure, "args_canary": s.privateBody, "tamper": s.tampered,
	} {
		text, err := s.takeText(name)
		if err != nil {
			return got{}, err
		}
		if text == "" {
			continue
		}
		return got{status: 200, class: "none", detail: "nothing was seen"}, run(text)
	}
	return got{}, unknown("the audit of that")
}

// privatePrompt sends the prompt where it is answered, and where it is refused.
func (s *stage) privatePrompt(text string) error {
	s.private[text] = true
	a, err := s.ask(s.as, text, world.Says("Good."))
	if err == nil && a.Status != "completed" {
		err = fmt.Errorf("the run: %s", a.Body)
	}
	_, refused := s.call(s.as, "POST", "/api/agent/run", jsonOf(map[string]any{"prompt": text, "threadId": "nosuchthread00000000"}))
	failed, broken := s.ask(s.as, text, func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Status: 400, Body: fakegemini.ErrorBody(400, text)}
	})
	if strings.Contains(string(failed.Body), text) {
		err = errors.Join(err, errors.New("the model's error is in the answer"))
	}
	return errors.Join(err, refused, broken)
}

// privateFailure has the provider say the text in an error.
func (s *stage) privateFailure(text string) error {
	s.private[text] = true
	run, err := s.open1("", s.as)
	if err != nil {
		return err
	}
	s.w.SetFault(func(op string) localgoogle.Fault {
		if op != "gmail.drafts.send" {
			return localgoogle.Fault{}
		}
		return localgoogle.Fault{Kind: localgoogle.StatusBefore, Status: 400, Reason: "invalidArgument", Text: text}
	})
	if err := s.decided(s.as, run, "approve_once"); err != nil {
		return err
	}
	end, err := s.run(s.as, run)
	if classOf(end) != "ToolExecutionError" || strings.Contains(string(end.Body), text) {
		err = errors.Join(err, fmt.Errorf("the run: %s", end.Body))
	}
	return err
}

// privateBody sends the text as a mail's body; the audit has its hash.
func (s *stage) privateBody(text string) error {
	s.private[text] = true
	run, err := s.opened(s.as, "gmail_send", world.Mail("ana@example.com", "s", text))
	if err == nil {
		err = s.decided(s.as, run, "approve_once")
	}
	if err != nil {
		return err
	}
	entries, _, err := s.chain(run)
	for _, e := range entries {
		if e.InputHash != run.Approvals[0].ArgsHash {
			err = errors.Join(err, fmt.Errorf("entry %d has the input hash %q", e.Seq, e.InputHash))
		}
	}
	return err
}

// chain is the stored audit of the run, and its head.
func (s *stage) chain(run world.Answer) (entries []audit.Entry, head audit.Head, err error) {
	docs, err := s.w.App.Store.Query(s.ctx, store.Query{Collection: "audit", OrderBy: "seq", Limit: 500, Where: []store.Filter{{Field: "runId", Op: "==", Value: run.RunID}}})
	if err != nil {
		return nil, head, err
	}
	for _, d := range docs {
		e, err := audit.Decode(d.Data)
		if err != nil {
			return nil, head, err
		}
		entries = append(entries, e)
	}
	runs, err := s.w.App.Store.Get(s.ctx, "runs/"+run.RunID)
	if err != nil {
		return nil, head, err
	}
	var stored struct{ Audit audit.Head }
	err = json.Unmarshal(runs[0].Data, &stored)
	return entries, stored.Audit, err
}

var tampering = regexp.MustCompile(`^(change one field of entry|delete entry|swap entries) (\d+)(?: of \d+| and (\d+))?$`)

// tampered changes a chain of twelve entries behind Countersign's back; whoever verifies it is told where.
func (s *stage) tampered(how string) error {
	m := tampering.FindStringSubmatch(how)
	if m == nil {
		return unknown("tamper: %s", how)
	}
	first, _ := strconv.ParseInt(m[2], 10, 64) // digits
	second, _ := strconv.ParseInt(m[3], 10, 64)
	run, err := s.longRun()
	if err != nil {
		return err
	}
	entries, head, err := s.chain(run)
	if err != nil || len(entries) < 7 || len(audit.Verify(entries, head)) > 0 {
		return errors.Join(err, fmt.Errorf("the chain of %d entries is not whole from the start", len(entries)))
	}
	if err := s.tamper(m[1], run.RunID, first, second); err != nil {
		return err
	}
	if entries, head, err = s.chain(run); err != nil {
		return err
	}
	problems := audit.Verify(entries, head)
	for _, p := range problems {
		if p.First <= max(first+1, second) && p.Last >= first {
			return nil
		}
	}
	return fmt.Errorf("the verifier says %v", problems)
}

// longRun is a run with three mails, each with four entries.
func (s *stage) longRun() (world.Answer, error) {
	var turn fakegemini.Turn
	for i := range 3 {
		turn.Calls = append(turn.Calls, fakegemini.Call{Name: "gmail_send", Args: world.Mail("ana@example.com", fmt.Sprint(i), "b")})
	}
	run, err := s.ask(s.as, "Please.", func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "Done."}
		}
		return turn
	})
	if err != nil {
		return run, err
	}
	return run, s.decided(s.as, run, "approve_once")
}

func (s *stage) tamper(how, runID string, first, second int64) error {
	var a, b audit.Entry
	at, to := audit.Path(runID, first), audit.Path(runID, second)
	switch how {
	case "delete entry":
		_, err := s.w.App.Store.Commit(s.ctx, store.Delete(at, time.Time{}))
		return err
	case "swap entries":
		if err := s.change(at, &a, func() {}); err != nil {
			return err
		}
		if err := s.change(to, &b, func() { a, b = b, a }); err != nil {
			return err
		}
		kept := a
		return s.change(at, &a, func() { a = kept })
	case "change one field of entry":
		return s.change(at, &a, func() { a.Tool = "calendar_event_create" })
	}
	return unknown("tamper: %s", how)
}
