package hostile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// pending runs a case of http:pending: what waits is shown as it is, or the list is asked for in an odd way.
func pending(s *env) (got, error) {
	_, args := s.peek("pending_args")
	_, reason := s.peek("pending_reason_from_model")
	if !args && !reason {
		return web(s)
	}
	if err := s.open(nil); err != nil {
		return got{}, err
	}
	if reason {
		return s.excuse()
	}
	v, _, err := s.take("pending_args")
	if err != nil {
		return got{}, err
	}
	tool, err := s.takeText("pending_tool")
	if err != nil {
		return got{}, err
	}
	tool = cmp.Or(tool, "gmail_send")
	v = inOurWords(s.c, tool, v)
	s.keep(v)
	run, err := s.ask(s.as, "Please do it.", once(tool, v))
	if err != nil {
		return got{}, err
	}
	g, err := s.judged(tool, v, run, 0)
	if g.decision == "allow" {
		err = errors.Join(err, errors.New("nobody was asked"))
	}
	return g, err
}

// excuse has the model give a reason of its own beside its call: the pending view must not have it.
func (s *env) excuse() (got, error) {
	text, err := s.takeText("pending_reason_from_model")
	if err != nil {
		return got{}, err
	}
	run, err := s.ask(s.as, "Please do it.", func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: text,
			Calls: []fakegemini.Call{{Name: "gmail_send", Args: testkit.Mail("ana@example.com", "s", "b")}}}
	})
	if err != nil || len(run.Approvals) != 1 {
		return gotOf(run), errors.Join(err, fmt.Errorf("%d approvals wait", len(run.Approvals)))
	}
	list, err := s.call(s.as, "GET", "/api/agent/approvals/pending", "")
	if strings.Contains(string(list.Body), text) || !json.Valid(list.Body) {
		err = errors.Join(err, fmt.Errorf("the pending view repeats the model: %s", list.Body))
	}
	return gotOf(list), err
}
