package gmail_test

import (
	"fmt"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// unitsOf are the costs of Gmail's methods (https://developers.google.com/workspace/gmail/api/reference/quota).
var unitsOf = map[string]int{create: 10, get: 5, sendDraft: 100, sendMessage: 100, listDrafts: 5, profile: 1,
	listMails: 5, getMail: 5, "gmail.threads.get": 10, listLabels: 1, modify: 5, "gmail.threads.modify": 10,
	"gmail.messages.attachments.get": 5, "gmail.settings.sendAs.list": 1}

func unitsSpent(g *toolstest.Google) (n int) {
	for method, units := range unitsOf {
		n += units * g.Calls(method)
	}
	return n
}

// TestQuotaOfDearestCalls executes the dearest call of each tool. It costs the units that the tool states.
func TestQuotaOfDearestCalls(t *testing.T) {
	const mails = gmail.MaxModified
	for name, open := range map[string]func(*testing.T) (*toolstest.Google, *tool.Tool, tool.Call){
		"send": func(t *testing.T) (*toolstest.Google, *tool.Tool, tool.Call) {
			w := newEnv(t, gmail.Options{}, compose)
			return w.Google, w.Tool, w.Call
		},
		"draft": func(t *testing.T) (*toolstest.Google, *tool.Tool, tool.Call) {
			w := newEnv(t, gmail.Options{}, compose)
			left := provider(t, w.Google, gmail.NewDraft(fakegoogle.Accounts{}, gmail.Options{Endpoint: w.URL + "/"}))
			return w.Google, left.Tool, left.Call
		},
		"search": func(t *testing.T) (*toolstest.Google, *tool.Tool, tool.Call) {
			i := openInbox(t, mayRead)
			for range mails {
				i.receive(t, "ana@example.com", "invoice", "Please pay.")
			}
			args, err := i.tool.Normalize(finding.With(nil))
			if err != nil {
				t.Fatal(err)
			}
			return i.Google, i.tool, tool.Call{UID: toolstest.GoogleUser, Args: args}
		},
		"read": func(t *testing.T) (*toolstest.Google, *tool.Tool, tool.Call) {
			m := openMailbox(t)
			for n := range mails {
				if err := m.Receive("me@example.com", fmt.Appendf(nil, "From: a@b.example\r\nSubject: x\r\n"+
					"Message-ID: <%d@b.example>\r\nReferences: <%d@b.example>\r\n\r\nhi", n, n-1)); err != nil {
					t.Fatal(err)
				}
			}
			return m.Google, m.tool, tool.Call{UID: toolstest.GoogleUser, Args: []byte(`{"threadId":"` + first + `"}`)}
		},
		"modify": func(t *testing.T) (*toolstest.Google, *tool.Tool, tool.Call) {
			w := newFiled(t, archiving())
			args := archiving()
			args["threadId"] = w.Newest("me@example.com")
			for range mails - 1 {
				w.receive(t, "Your invoice")
			}
			w.completes(t, args)
			return w.Google, w.Tool, w.Call
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, tl, call := open(t)
			ctx, began := t.Context(), unitsSpent(g)
			if tl.Prepares() {
				var err error
				if call.Handle, err = tl.Prepare(ctx, call); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := tl.Execute(ctx, call); err != nil {
				t.Fatal(err)
			}
			if spent := unitsSpent(g) - began; spent != tl.Quota.Units || tl.Quota.Service != gmail.Service {
				t.Errorf("the call costs %d units, and the tool states %+v", spent, tl.Quota)
			}
		})
	}
}
