package gauntlet

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/shared/testkit"
)

// TestTakenBackAtTheUsersWord makes the user cancel a pending action in words, through each API that takes the user's
// words. The card is then decided, nothing is sent, and the audit distinguishes the cancellation from a rejection.
func TestTakenBackAtTheUsersWord(t *testing.T) {
	w := deploy(t, testkit.Options{})
	w.SetModel(demomodel.Model(time.Now))
	const mail = "Send a mail to %s@example.com: the demo is at ten"
	for door, message := range map[string]string{
		"/run": `{"prompt":WORDS,"threadId":"THREAD"}`,
		"/ui": `{"id":"c1","trigger":"submit-message","messages":[{"id":"mN","role":"user","parts":[` +
			`{"type":"text","text":WORDS}]}]}`,
		"/agui": `{"threadId":"t1","runId":"rN","messages":[{"id":"mN","role":"user","content":WORDS}],"tools":[],` +
			`"context":[],"state":{},"forwardedProps":{}}`,
	} {
		t.Run(door[1:], func(t *testing.T) {
			said := 0
			say := func(words, thread string) {
				said++
				body := strings.NewReplacer("WORDS", strconv.Quote(words), `,"threadId":"THREAD"`, thread, "N",
					strconv.Itoa(said)).Replace(message)
				w.call(http.MethodPost, door, body)
			}
			say(fmt.Sprintf(mail, "bob"), "")
			waits := w.call(http.MethodGet, "/approvals/pending", "").Approvals
			if len(waits) != 1 {
				t.Fatalf("%d pending cards", len(waits))
			}
			thread := w.call(http.MethodGet, "/runs/"+waits[0].RunID, "").ThreadID
			say("no, cancel", `,"threadId":"`+thread+`"`)
			w.wantRun(waits[0].RunID, "completed", "")
			if got := w.decide(waits[0], "approve_once"); got.HTTP != http.StatusConflict {
				t.Errorf("an approval afterwards: %d %s", got.HTTP, got.Body)
			}
			audit := w.call(http.MethodGet, "/audit?runId="+waits[0].RunID, "").Body
			if !strings.Contains(string(audit), `"take_back"`) || strings.Contains(string(audit), `"reject"`) {
				t.Errorf("the audit is %s", audit)
			}
		})
	}
	first := w.ask(fmt.Sprintf(mail, "bob"), "")
	w.ask(fmt.Sprintf(mail, "eve"), first.ThreadID)
	which := w.ask("forget it", first.ThreadID)
	if !strings.Contains(string(which.Body), "Which of these do I take back?") {
		t.Errorf("with two cards: %s", which.Body)
	}
	both := w.ask("both", first.ThreadID)
	if said := string(both.Body); !strings.Contains(said, "Taken back, and nothing was done") ||
		!strings.Contains(said, "bob@") || !strings.Contains(said, "eve@") {
		t.Errorf("both: %s", both.Body)
	}
	w.wantMails(0)
}
