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

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// private runs a case of audit: a request contains a text that no log and no audit may have, an attacker changes the
// audit, or a user is deleted.
func private(s *env) got {
	if text := s.takeText("gdpr"); text != "" {
		return s.erased(text)
	}
	s.open(nil)
	for name, hide := range map[string]func(string){
		"prompt": s.privatePrompt, "tool_error": s.privateFailure, "provider_error": s.privateFailure,
		"args_canary": s.privateBody,
		"model_error": s.privateModel, "token": s.privateToken, "comment": s.privateComment,
	} {
		if text := s.takeText(name); text != "" {
			s.private[text] = true
			hide(text)
			return got{status: 200, class: "none", detail: "nothing was seen"}
		}
	}
	how := s.takeText("tamper")
	if how == "" {
		s.unknown("the audit of that")
	}
	s.tampered(how)
	return got{status: 200, class: "none", detail: "it was seen"}
}

// failing is a model whose service fails with the text.
func failing(text string) fakegemini.ModelFunc {
	return func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Status: 400, Body: fakegemini.ErrorBody(400, text)}
	}
}

// privatePrompt sends the prompt once where it is answered, and once where it is refused.
func (s *env) privatePrompt(text string) {
	if a := s.ask(s.as, text, testkit.Says("Good.")); a.Status != "completed" {
		s.wrong("the run: %s", a.Body)
	}
	s.call(s.as, "POST", "/api/agent/run", jsonOf(map[string]any{"prompt": text, "threadId": "nosuchthread00000000"}))
	if failed := s.ask(s.as, text, failing(text)); strings.Contains(string(failed.Body), text) {
		s.wrong("the model's error is in the answer")
	}
}

// privateModel makes the model fail with the text.
func (s *env) privateModel(text string) {
	if a := s.ask(s.as, "Please.", failing(text)); a.Status != "failed" || strings.Contains(string(a.Body), text) {
		s.wrong("the run: %s", a.Body)
	}
}

// privateToken sends the text as a token.
func (s *env) privateToken(text string) {
	a, err := testkit.Connect(nil, s.w.Base, text)(s.ctx, "GET", "/api/agent/threads", nil)
	s.must(err)
	if s.hear(s.as, "GET /api/agent/threads", a); a.HTTP != http.StatusUnauthorized {
		s.wrong("it is answered %d", a.HTTP)
	}
}

// privateComment sends the text as the comment of a rejection.
func (s *env) privateComment(text string) {
	a := s.call(s.as, "POST", "/api/agent/approvals/resolve", jsonOf(map[string]any{
		"approvalId": s.open1("", s.as).Approvals[0].ApprovalID, "decision": "reject", "comment": text}))
	if a.HTTP != http.StatusOK {
		s.wrong("the no is answered %s", a.Body)
	}
	s.must(s.deliver())
}

// privateFailure makes the provider return the text in an error.
func (s *env) privateFailure(text string) {
	r := s.open1("", s.as)
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op != "gmail.drafts.send" {
			return fakegoogle.Fault{}
		}
		return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 400, Reason: "invalidArgument", Text: text}
	})
	s.decided(s.as, r, "approve_once")
	if end := s.run(s.as, r); classOf(end) != "ToolExecutionError" || strings.Contains(string(end.Body), text) {
		s.wrong("the run: %s", end.Body)
	}
}

// privateBody sends the text as an e-mail's body. The audit has its hash, keyed with the run's nonce.
func (s *env) privateBody(text string) {
	r := s.opened(s.as, "gmail_send", testkit.Mail("ana@example.com", "s", text))
	s.decided(s.as, r, "approve_once")
	stored, _, err := s.w.App.API.Records.Run(s.ctx, r.RunID)
	s.must(err)
	entries, _ := s.chain(r)
	for _, e := range entries {
		if e.InputHash != audit.InputHash(stored.Nonce, r.Approvals[0].ArgsHash) ||
			e.InputHash == r.Approvals[0].ArgsHash {
			s.wrong("entry %d has the input hash %q", e.Seq, e.InputHash)
		}
	}
}

// chain returns the stored audit of the run, and its head.
func (s *env) chain(r testkit.Answer) (entries []audit.Entry, head audit.Head) {
	docs, err := s.w.App.Store.Query(s.ctx, document.AuditOfChain(r.RunID, 500))
	s.must(err)
	for _, d := range docs {
		e, err := audit.Decode(d.Data)
		s.must(err)
		entries = append(entries, e)
	}
	runs, err := s.w.App.Store.Get(s.ctx, "runs/"+r.RunID)
	s.must(err)
	var stored struct{ Audit audit.Head }
	s.must(document.Decode(runs[0], &stored))
	return entries, stored.Audit
}

var (
	tampering = regexp.MustCompile(
		`(?i)\b(change|modify|edit|alter|rewrite|replace|delete|remove|drop|swap|reorder|move|duplicate|append|insert|forge|truncate|cut)(d|s|ed)?\b`)
	lastOnes = regexp.MustCompile(`(?i)\b(last|newest|end|tail)\b`)
	numbers  = regexp.MustCompile(`\d+`)
)

// tampered changes a chain of twelve entries directly in the store. Verification must name the place.
func (s *env) tampered(how string) {
	words, found := tampering.FindStringSubmatch(how), numbers.FindAllString(how, -1)
	if len(found) == 0 && lastOnes.MatchString(how) {
		found = []string{"12"}
	}
	if words == nil || len(found) == 0 {
		s.unknown("tamper: %s", how)
	}
	first, e1 := strconv.ParseInt(found[0], 10, 64)
	second, e2 := strconv.ParseInt(found[len(found)-1], 10, 64)
	s.must(errors.Join(e1, e2))
	r := s.longRun()
	entries, head := s.chain(r)
	if len(entries) < 7 || len(audit.Verify(entries, head)) > 0 {
		s.stop("the chain of %d entries is not whole from the start", len(entries))
	}
	s.tamper(strings.ToLower(words[1]), r.RunID, first, second, int64(len(entries)))
	problems := audit.Verify(s.chain(r))
	for _, p := range problems {
		if p.First <= first+1 && p.Last >= first || p.Fault == audit.Inserted || p.Fault == audit.CutOff {
			return
		}
	}
	s.wrong("the verifier says %v", problems)
}

// longRun creates a run with three e-mails, each with four entries.
func (s *env) longRun() testkit.Answer {
	var turn fakegemini.Turn
	for i := range 3 {
		turn.Calls = append(turn.Calls,
			fakegemini.Call{Name: "gmail_send", Args: testkit.Mail("ana@example.com", fmt.Sprint(i), "b")})
	}
	stored := s.ask(s.as, "Please.", func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "Done."}
		}
		return turn
	})
	s.decided(s.as, stored, "approve_once")
	return stored
}

func (s *env) tamper(how, runID string, first, second, last int64) {
	var a, b audit.Entry
	at, to := document.AuditPath(runID, first), document.AuditPath(runID, second)
	switch how {
	case "delete", "remove", "drop":
		s.commit(store.Delete(at, time.Time{}))
	case "truncate", "cut":
		for ; first <= last; first++ {
			s.commit(store.Delete(document.AuditPath(runID, first), time.Time{}))
		}
	case "duplicate", "append", "insert", "forge":
		s.forge(at, document.AuditPath(runID, last+1), last+1)
	case "swap", "reorder", "move":
		s.change(at, &a, func() {})
		s.change(to, &b, func() { a, b = b, a })
		kept := a
		s.change(at, &a, func() { a = kept })
	default:
		s.change(at, &a, func() { a.Tool = "calendar_event_create" })
	}
}

// forge appends a copy of another entry.
func (s *env) forge(from, to string, seq int64) {
	docs, err := s.w.App.Store.Get(s.ctx, from)
	s.must(err)
	var e audit.Entry
	s.must(document.Decode(docs[0], &e))
	fields := maps.Clone(docs[0].Fields)
	e.Seq, fields["seq"] = seq, seq
	data, err := json.Marshal(e)
	s.must(err)
	s.commit(store.Create(to, fields, data))
}
