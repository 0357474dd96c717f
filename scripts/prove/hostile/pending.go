package hostile

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// pending runs a case of http:pending. A pending action must be shown unchanged, or the request for the list is
// unusual.
func pending(s *env) got {
	args, reason := s.has("pending_args"), s.has("pending_reason_from_model")
	if !args && !reason {
		return web(s)
	}
	if s.open(nil); reason {
		return s.excuse()
	}
	v, _ := s.take("pending_args")
	tool := cmp.Or(s.takeText("pending_tool"), "gmail_send")
	v = inOurWords(s.c, tool, v)
	s.keep(v)
	g := s.judged(tool, v, s.ask(s.as, "Please do it.", once(tool, v)), 0)
	if g.decision == "allow" {
		s.wrong("its user was not asked")
	}
	return g
}

// excuse makes the model give a reason together with its call. The pending view must not show the reason.
func (s *env) excuse() got {
	text := s.takeText("pending_reason_from_model")
	r := s.ask(s.as, "Please do it.", func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: text,
			Calls: []fakegemini.Call{{Name: "gmail_send", Args: testkit.Mail("ana@example.com", "s", "b")}}}
	})
	if len(r.Approvals) != 1 {
		s.wrong("%d approvals wait", len(r.Approvals))
		return gotOf(r)
	}
	list := s.call(s.as, "GET", "/api/agent/approvals/pending", "")
	if strings.Contains(string(list.Body), text) || !json.Valid(list.Body) {
		s.wrong("the pending view repeats the model: %s", list.Body)
	}
	return gotOf(list)
}
