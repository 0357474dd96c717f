package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// words holds the arguments and results of the runner's tools.
type words struct {
	Text string `json:"text,omitempty" jsonschema:"any text"`
}

// ownTools adds a tool with a side effect, unless Countersign has one of that name.
func (s *env) ownTools(name string) func(*unit.Env) {
	return func(l *unit.Env) {
		if name == "" || l.Tools[name] != nil {
			return
		}
		testkit.Offer(l, tool.Define(tool.Def[words, words]{Name: name, Description: "A tool of the runner.",
			SideEffect: true,
			Preview: func(in words) tool.Preview {
				return tool.Preview{Title: name, Fields: []tool.Field{{Label: "Text", Value: in.Text}}}
			},
			Execute: func(_ context.Context, _ tool.Call, in words) (words, error) { s.ran.Add(1); return in, nil },
		}))
	}
}

// reading adds a tool that only reads. It returns the text's value at the time of the call.
func (s *env) reading(name string, text *string) func(*unit.Env) {
	return func(l *unit.Env) {
		testkit.Offer(l, tool.Define(tool.Def[words, words]{Name: name,
			Description: "Reads something for the runner.",
			Execute:     func(context.Context, tool.Call, words) (words, error) { return words{*text}, nil }}))
	}
}

// call runs a case of the form tool:name. The model calls the tool with the case's arguments.
func call(s *env) got {
	name := strings.TrimPrefix(s.c.Target, "tool:")
	account := s.account()
	s.open(nil, account.settings()...)
	account.link(s)
	args, _ := s.take("args")
	after := s.takeText("after")
	s.allow(name)
	args = inOurWords(s.c, name, args)
	s.keep(args)
	before := s.effects()
	asked := s.ask(s.as, "Please do it.", once(name, args))
	switch {
	case after == "approve":
		return s.afterApproval(asked, account)
	case after != "":
		s.unknown("after %q", after)
	}
	return s.judged(name, args, asked, before)
}

// once is a model that calls the tool once, whatever the arguments are.
func once(name string, args any) fakegemini.ModelFunc {
	var raw any = json.RawMessage(jsonOf(args))
	if args == nil {
		raw = nil
	}
	return testkit.Wants(name, raw)
}

// judged returns the result of the call.
func (s *env) judged(name string, args any, asked testkit.Answer, before int) got {
	g := gotOf(asked)
	switch {
	case g.status != 200:
	case len(asked.Actions) == 0 && asked.Status == "failed": // the whole model response was rejected
	case len(asked.Actions) != 1:
		s.wrong("the run has %d actions: %s", len(asked.Actions), asked.Body)
	case len(asked.Approvals) > 0:
		g.decision = "require_approval"
		if n := s.effects(); n != before {
			s.stop("%d effects before anybody was asked", n-before)
		}
		s.executedAsShown(name, args, asked)
	case g.class != "none":
		g.decision = "deny"
		if waits := s.pending(s.as); len(waits) > 0 || s.effects() != before {
			s.wrong("it was refused, and %d approvals wait, %d effects", len(waits), s.effects()-before)
		}
	default:
		g.decision = "allow"
	}
	return g
}

// afterApproval lets the user approve, and then breaks the account.
func (s *env) afterApproval(asked testkit.Answer, account *account) got {
	if len(asked.Approvals) != 1 {
		s.wrong("its user was not asked")
		return gotOf(asked)
	}
	account.breakNow()
	s.decided(s.as, asked, "approve_once")
	g := gotOf(s.run(s.as, asked))
	g.decision = "require_approval"
	if n := s.effects(); n != 0 {
		s.wrong("%d effects", n)
	}
	account.broken(s)
	return g
}

// executedAsShown reads what a user would see, approves it, and compares the effect with the preview.
func (s *env) executedAsShown(name string, args any, asked testkit.Answer) {
	s.check(shownWhole(s.call(s.as, "GET", "/api/agent/approvals/pending", "").Body, name, args))
	before := s.effects()
	s.decided(s.as, asked, "approve_once")
	if n := s.effects() - before; n != 1 {
		s.stop("the yes had %d effects", n)
	}
	if name == "gmail_send" {
		messages := s.w.Google.Messages()
		s.check(sentAsAsked(messages[len(messages)-1], args))
	}
}

// shownWhole compares the pending view with the arguments. The view must have every text of the arguments, with
// invisible characters written out, and a warning if there are any.
func shownWhole(body []byte, name string, args any) error {
	var list struct {
		Approvals []struct {
			Tool    string
			Preview tool.Preview
		}
	}
	if err := json.Unmarshal(body, &list); err != nil || len(list.Approvals) == 0 || list.Approvals[0].Tool != name {
		return fmt.Errorf("the pending view does not have the call first (%w): %.200s", err, body)
	}
	preview := list.Approvals[0].Preview
	view := preview.Title
	for _, f := range preview.Fields {
		view += "\n" + f.Value
	}
	if at := strings.IndexFunc(view,
		func(r rune) bool { return visible.Dangerous(r) && r != '\n' && r != '\t' }); at >= 0 {
		r, _ := utf8.DecodeRuneInString(view[at:])
		return fmt.Errorf("the pending view shows U+%04X as it is", r)
	}
	for _, text := range texts(args, "to", "cc", "bcc", "subject", "body", "htmlBody", "summary", "description",
		"location", "attendees") {
		line, hidden := visible.Line(text)
		long, _ := visible.Text(strings.ReplaceAll(text, "\r\n", "\n")) // line ends of an e-mail do not count
		if !contains(view, line) && !contains(view, long) {
			return fmt.Errorf("the pending view does not show %.100q", text)
		}
		if hidden && len(preview.Warnings) == 0 &&
			strings.ContainsFunc(text, func(r rune) bool { return visible.Dangerous(r) && r > 0x20 }) {
			return fmt.Errorf("the pending view does not warn of %.100q", text)
		}
		if letters := lettersOf(text); !contains(view, letters) {
			return fmt.Errorf("the pending view does not show %q as %q", text, letters)
		}
	}
	if twice(args) && !strings.Contains(strings.Join(preview.Warnings, " "), "UTC+") {
		return fmt.Errorf("the pending view does not state which of two hours is meant: %q", preview.Warnings)
	}
	return nil
}

// lettersOf returns how a reader sees an address in punycode, or "" for any other text.
func lettersOf(text string) string {
	_, domain, found := strings.Cut(text, "@")
	if !found || !strings.Contains(domain, "xn--") {
		return ""
	}
	letters, err := idna.Punycode.ToUnicode(domain)
	if err != nil {
		return ""
	}
	return letters
}

// twice reports whether the event's start occurs twice in its time zone, because the clocks change.
func twice(args any) bool {
	fields, _ := args.(map[string]any)
	zone, err := time.LoadLocation(textOf(fields["timeZone"]))
	if err != nil {
		return false
	}
	at, err := time.ParseInLocation("2006-01-02T15:04:05", textOf(fields["start"]), zone)
	same := func(d time.Duration) bool { return at.Add(d).Format(time.DateTime) == at.Format(time.DateTime) }
	return err == nil && (same(time.Hour) || same(-time.Hour))
}

// contains reports whether the view contains the text. It ignores case, because addresses are normalized.
func contains(view, text string) bool {
	return strings.Contains(strings.ToLower(view), strings.ToLower(text))
}

// texts returns the texts under the names.
func texts(args any, names ...string) (out []string) {
	fields, _ := args.(map[string]any)
	for _, name := range names {
		switch v := fields[name].(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, one := range v {
				out = append(out, textOf(one))
			}
		}
	}
	return out
}

// sentAsAsked compares a sent e-mail with the arguments: exactly these recipients, and this text.
func sentAsAsked(m fakegoogle.Message, args any) error {
	for name, have := range map[string][]string{"to": m.To, "cc": m.Cc, "bcc": m.Bcc} {
		var want []string
		for _, one := range texts(args, name) {
			want = append(want, strings.ToLower(one))
		}
		slices.Sort(want)
		want = slices.Compact(want)
		have = slices.Sorted(slices.Values(have))
		if strings.ToLower(strings.Join(have, ",")) != strings.Join(want, ",") {
			return fmt.Errorf("the mail has %s: %q, want %q", name, have, want)
		}
	}
	subject, body := texts(args, "subject")[0], texts(args, "body")[0]
	unix := func(s string) string { return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n") }
	html := strings.Join(texts(args, "htmlBody"), "")
	if m.Subject != subject || unix(m.Text) != unix(body) || unix(m.HTML) != unix(html) {
		return fmt.Errorf("the mail says %q, %q%q", m.Subject, m.Text, m.HTML)
	}
	return nil
}

var allowSetup = regexp.MustCompile(`^allowlist\[([^\]]*)\]$`)

// allow takes the setup of a call: the recipients that the user always allows, and the time when an entry is removed.
func (s *env) allow(name string) {
	setup := s.takeText("setup")
	if setup == "" {
		return
	}
	for part := range strings.SplitSeq(setup, ";") {
		part = strings.TrimSpace(part)
		m := allowSetup.FindStringSubmatch(part)
		switch {
		case m != nil:
			s.alwaysAllow(name, strings.Split(m[1], ","))
		case part == "remove_after_decision":
			s.removeLater()
		case part == "expired":
			s.pass(100 * 24 * time.Hour) // longer than any entry lasts
		default:
			s.unknown("the setup %q", part)
		}
	}
}

// alwaysAllow makes the user always allow the recipients, by approving such a call.
func (s *env) alwaysAllow(name string, to []string) {
	for i := range to {
		to[i] = strings.TrimSpace(to[i])
	}
	if strings.ContainsAny(strings.Join(to, ""), "*") || !strings.Contains(to[0], "@") {
		s.alwaysAllowOddly(name, to)
		return
	}
	asked := s.opened(s.as, name, map[string]any{"to": to, "subject": "s", "body": "b"})
	s.mu.Lock()
	s.allowed++ // the case's call may use the entry
	s.mu.Unlock()
	s.decided(s.as, asked, "approve_and_always_allow_recipient")
}

// alwaysAllowOddly writes entries that no decision would create, such as a whole domain, directly to the store.
func (s *env) alwaysAllowOddly(name string, to []string) {
	u := run.User{UID: s.as}
	s.change(document.UserPath(s.as), &u, func() {
		for _, one := range to {
			u.Allow = append(u.Allow, policy.Entry{ID: policy.EntryID(s.as, name, one), Tool: name, Recipient: one,
				CreatedAt: s.now(), ExpiresAt: s.now().Add(time.Hour)})
		}
	})
}

// removeLater empties the allowlist between the policy's decision and the effect, while the draft is created.
func (s *env) removeLater() {
	entries := s.allowlist()
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op == "gmail.drafts.create" {
			for _, e := range entries { // the second time they do not exist
				_, _ = s.client(s.as)(s.ctx, "DELETE", "/api/agent/allowlist/"+e.ID, nil)
			}
			s.mu.Lock()
			s.allowed = 0
			s.mu.Unlock()
		}
		return fakegoogle.Fault{}
	})
}
