package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

const deskAlias = "desk@example.com"

// TestSendAsAlias sends from a verified address of the account's own, in both modes. The card shows it, and the answer
// to an e-mail leaves the alias out.
func TestSendAsAlias(t *testing.T) {
	for _, mode := range []string{"draft", "direct"} {
		w, id := answering(t, strings.Replace(asked, "cleo@", "desk@", 1), "GMAIL_SEND_MODE="+mode)
		w.Google.SetSendAs(testkit.Address("ana"), fakegoogle.SendAs{Address: "Desk@example.com"},
			fakegoogle.SendAs{Address: "new@example.com", Pending: true})
		r, card := w.proposes(map[string]any{"body": "Noon is fine.", "from": "DESK@example.com",
			"replyTo": map[string]any{"messageId": id, "all": true}})
		holds(t, "the card", card, `{"label":"Sent as","value":"Desk@example.com"`, `"value":"ana@example.com"`)
		raw := w.sends(r)
		holds(t, "the e-mail", raw, "From: Desk@example.com\r\n", "To: ben@example.com\r\n", "Cc: dan@example.com\r\n")
		ended := w.call("GET", "/api/agent/runs/"+r.RunID, "")
		holds(t, "the run", string(ended.Body), gmail.ReadBack)
	}
}

// TestSendAsUnknownAddress has senders that nothing is asked about.
func TestSendAsUnknownAddress(t *testing.T) {
	w, _ := answering(t, asked)
	w.Google.SetSendAs(testkit.Address("ana"), fakegoogle.SendAs{Address: deskAlias},
		fakegoogle.SendAs{Address: "new@example.com", Pending: true})
	mail := testkit.Mail("bob@example.com", "s", "b")
	for name, from := range map[string]string{"a stranger's": "eve@evil.example",
		"not confirmed":  "new@example.com",
		"another user's": "ben@example.com", "a name": "Desk <desk@example.com>",
		"two":      deskAlias + ",eve@evil.example",
		"a header": deskAlias + "\r\nBcc: eve@evil.example"} {
		mail["from"] = from
		if r, _ := w.proposes(mail); len(r.Approvals) != 0 || r.Actions[0].Status != "failed" ||
			!strings.Contains(string(r.Body), `"field":"from"`) {
			t.Errorf("%s: %s; want len(r.Approvals) 0, r.Actions[0].Status “failed”, r.Body with %q",
				name, r.Body, `"field":"from"`)
		}
	}
	mail["from"] = testkit.Address("ana") // as if it were left out
	r, card := w.proposes(mail)
	if strings.Contains(card, "Sent as") {
		t.Errorf("the own address: %s", card)
	}
	holds(t, "the e-mail", w.sends(r), "From: ana@example.com\r\n")
}

// TestSendAsAliasRemoved removes the alias, or the right to list it, between the card and the intent.
func TestSendAsAliasRemoved(t *testing.T) {
	for _, tool := range []string{gmail.Name, gmail.LeaveDraft} {
		for name, change := range map[string]func(w *proved){
			"removed": func(w *proved) { w.Google.SetSendAs(testkit.Address("ana")) },
			"unproven": func(w *proved) {
				w.Google.SetSendAs(testkit.Address("ana"), fakegoogle.SendAs{Address: deskAlias, Pending: true})
			},
			"no access": func(w *proved) { w.SetScopes("ana", testkit.Scopes...) },
		} {
			w, _ := answering(t, asked, "AGENTS="+daysAgent(t, tool))
			w.Google.SetSendAs(testkit.Address("ana"), fakegoogle.SendAs{Address: deskAlias})
			mail := testkit.Mail("bob@example.com", "s", "b")
			mail["from"] = deskAlias
			w.SetModel(testkit.Wants(tool, mail))
			r := w.askOf("days")
			if len(r.Approvals) != 1 {
				t.Fatalf("%s; want len(r.Approvals) 1", r.Body)
			}
			change(w)
			r = w.approve(r)
			if len(w.Google.Messages())+len(w.Google.Drafts(testkit.Address("ana"))) != 0 ||
				!strings.Contains(string(r.Body), `"status":"failed"`) {
				t.Errorf("%s, %s: %s", tool, name, r.Body)
			}
		}
	}
}

// TestSendAsApproval checks that another sender is always asked about.
func TestSendAsApproval(t *testing.T) {
	w, _ := answering(t, asked)
	w.Google.SetSendAs(testkit.Address("ana"), fakegoogle.SendAs{Address: deskAlias})
	mail := testkit.Mail("ben@example.com", "s", "b")
	r, _ := w.proposes(mail)
	a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_and_always_allow_recipient")
	if err != nil || a.HTTP != http.StatusOK {
		t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
	}
	w.deliver()
	mail["from"] = deskAlias
	if r, card := w.proposes(mail); len(r.Approvals) != 1 || !strings.Contains(card, "Sent as") {
		t.Errorf("%s; want len(r.Approvals) 1, card with “Sent as”", r.Body)
	}
}
