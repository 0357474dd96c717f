package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// private runs a case of audit: a request holds something that must be in no log and no audit, an attacker changes the
// audit, or a user is deleted.
func private(s *env) (got, error) {
	if text, err := s.takeText("gdpr"); text != "" || err != nil {
		if err != nil {
			return got{}, err
		}
		return s.erased(text)
	}
	if err := s.open(nil); err != nil {
		return got{}, err
	}
	for name, run := range map[string]func(string) error{
		"prompt": s.privatePrompt, "tool_error": s.privateFailure, "provider_error": s.privateFailure,
		"args_canary": s.privateBody,
		"model_error": s.privateModel, "token": s.privateToken, "comment": s.privateComment, "tamper": s.tampered,
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
func (s *env) privatePrompt(text string) error {
	s.private[text] = true
	a, err := s.ask(s.as, text, testkit.Says("Good."))
	if err == nil && a.Status != "completed" {
		err = fmt.Errorf("the run: %s", a.Body)
	}
	_, refused := s.call(s.as, "POST", "/api/agent/run",
		jsonOf(map[string]any{"prompt": text, "threadId": "nosuchthread00000000"}))
	failed, broken := s.ask(s.as, text, func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Status: 400, Body: fakegemini.ErrorBody(400, text)}
	})
	if strings.Contains(string(failed.Body), text) {
		err = errors.Join(err, errors.New("the model's error is in the answer"))
	}
	return errors.Join(err, refused, broken)
}

// privateModel has the model fail with the text.
func (s *env) privateModel(text string) error {
	s.private[text] = true
	a, err := s.ask(s.as, "Please.", func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Status: 400, Body: fakegemini.ErrorBody(400, text)}
	})
	if a.Status != "failed" || strings.Contains(string(a.Body), text) {
		err = errors.Join(err, fmt.Errorf("the run: %s", a.Body))
	}
	return err
}

// privateToken sends the text as a token.
func (s *env) privateToken(text string) error {
	s.private[text] = true
	a, err := testkit.Connect(nil, s.w.Base, text)(s.ctx, "GET", "/api/agent/threads", nil)
	s.hear(s.as, "GET /api/agent/threads", a)
	if err == nil && a.HTTP != http.StatusUnauthorized {
		err = fmt.Errorf("it is answered %d", a.HTTP)
	}
	return err
}

// privateComment sends the text as the comment of a rejection.
func (s *env) privateComment(text string) error {
	s.private[text] = true
	run, err := s.open1("", s.as)
	if err != nil {
		return err
	}
	a, err := s.call(s.as, "POST", "/api/agent/approvals/resolve",
		jsonOf(map[string]any{"approvalId": run.Approvals[0].ApprovalID, "decision": "reject", "comment": text}))
	if err == nil && a.HTTP != http.StatusOK {
		err = fmt.Errorf("the no is answered %s", a.Body)
	}
	return errors.Join(err, s.deliver())
}

// privateFailure has the provider return the text in an error.
func (s *env) privateFailure(text string) error {
	s.private[text] = true
	run, err := s.open1("", s.as)
	if err != nil {
		return err
	}
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op != "gmail.drafts.send" {
			return fakegoogle.Fault{}
		}
		return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 400, Reason: "invalidArgument", Text: text}
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

// privateBody sends the text as a mail's body; the audit has its hash, keyed with the run's nonce.
func (s *env) privateBody(text string) error {
	s.private[text] = true
	run, err := s.opened(s.as, "gmail_send", testkit.Mail("ana@example.com", "s", text))
	if err == nil {
		err = s.decided(s.as, run, "approve_once")
	}
	if err != nil {
		return err
	}
	stored, _, err := s.w.App.API.Records.Run(s.ctx, run.RunID)
	if err != nil {
		return err
	}
	entries, _, err := s.chain(run)
	for _, e := range entries {
		if e.InputHash != audit.InputHash(stored.Nonce, run.Approvals[0].ArgsHash) ||
			e.InputHash == run.Approvals[0].ArgsHash {
			err = errors.Join(err, fmt.Errorf("entry %d has the input hash %q", e.Seq, e.InputHash))
		}
	}
	return err
}

// chain returns the stored audit of the run, and its head.
func (s *env) chain(run testkit.Answer) (entries []audit.Entry, head audit.Head, err error) {
	docs, err := s.w.App.Store.Query(s.ctx, document.AuditOfChain(run.RunID, 500))
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
	err = document.Decode(runs[0], &stored)
	return entries, stored.Audit, err
}

var (
	tampering = regexp.MustCompile(
		`(?i)\b(change|modify|edit|alter|rewrite|replace|delete|remove|drop|swap|reorder|move|duplicate|append|insert|forge|truncate|cut)(d|s|ed)?\b`)
	lastOnes = regexp.MustCompile(`(?i)\b(last|newest|end|tail)\b`)
	numbers  = regexp.MustCompile(`\d+`)
)

// tampered changes a chain of twelve entries directly in the store; verification must name the place.
func (s *env) tampered(how string) error {
	words, found := tampering.FindStringSubmatch(how), numbers.FindAllString(how, -1)
	if len(found) == 0 && lastOnes.MatchString(how) {
		found = []string{"12"}
	}
	if words == nil || len(found) == 0 {
		return unknown("tamper: %s", how)
	}
	verb := strings.ToLower(words[1])
	first, e1 := strconv.ParseInt(found[0], 10, 64)
	second, e2 := strconv.ParseInt(found[len(found)-1], 10, 64)
	if err := errors.Join(e1, e2); err != nil {
		return err
	}
	run, err := s.longRun()
	if err != nil {
		return err
	}
	entries, head, err := s.chain(run)
	if err != nil || len(entries) < 7 || len(audit.Verify(entries, head)) > 0 {
		return errors.Join(err, fmt.Errorf("the chain of %d entries is not whole from the start", len(entries)))
	}
	if err := s.tamper(verb, run.RunID, first, second, int64(len(entries))); err != nil {
		return err
	}
	if entries, head, err = s.chain(run); err != nil {
		return err
	}
	problems := audit.Verify(entries, head)
	for _, p := range problems {
		if p.First <= first+1 && p.Last >= first || p.Fault == audit.Inserted || p.Fault == audit.CutOff {
			return nil
		}
	}
	return fmt.Errorf("the verifier says %v", problems)
}

// longRun makes a run with three mails, each with four entries.
func (s *env) longRun() (testkit.Answer, error) {
	var turn fakegemini.Turn
	for i := range 3 {
		turn.Calls = append(turn.Calls,
			fakegemini.Call{Name: "gmail_send", Args: testkit.Mail("ana@example.com", fmt.Sprint(i), "b")})
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

func (s *env) tamper(how, runID string, first, second, last int64) error {
	var a, b audit.Entry
	at, to := document.AuditPath(runID, first), document.AuditPath(runID, second)
	switch how {
	case "delete", "remove", "drop":
		_, err := s.w.App.Store.Commit(s.ctx, store.Delete(at, time.Time{}))
		return err
	case "truncate", "cut":
		for ; first <= last; first++ {
			if _, err := s.w.App.Store.Commit(s.ctx,
				store.Delete(document.AuditPath(runID, first), time.Time{})); err != nil {
				return err
			}
		}
		return nil
	case "duplicate", "append", "insert", "forge":
		return s.forge(at, document.AuditPath(runID, last+1), last+1)
	case "swap", "reorder", "move":
		if err := s.change(at, &a, func() {}); err != nil {
			return err
		}
		if err := s.change(to, &b, func() { a, b = b, a }); err != nil {
			return err
		}
		kept := a
		return s.change(at, &a, func() { a = kept })
	}
	return s.change(at, &a, func() { a.Tool = "calendar_event_create" })
}

// forge puts an entry that is like another behind the last one.
func (s *env) forge(from, to string, seq int64) error {
	docs, err := s.w.App.Store.Get(s.ctx, from)
	if err != nil {
		return err
	}
	var e audit.Entry
	if err := document.Decode(docs[0], &e); err != nil {
		return err
	}
	fields := maps.Clone(docs[0].Fields)
	e.Seq, fields["seq"] = seq, seq
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = s.w.App.Store.Commit(s.ctx, store.Create(to, fields, data))
	return err
}
