// Package check_test holds the checks that use Countersign from outside, as its users do: the built programs, over
// HTTP, in a browser.
package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestConsole uses the console in Chromium (testdata/console.mjs), kills the server with -9 while an approval waits,
// and checks the mailbox at the end: each approved e-mail was sent once. If SCREENSHOT_DIR is set, it gets the
// pictures.
func TestConsole(t *testing.T) {
	want := map[string]int{
		"ana@example.com: The demo is at ten": 1, "bob@example.com: Demo, moved": 1,
		"eve@example.org: This survives":  1,
		"kim@example.org: Lunch is ready": 1, "kim@example.org: Dinner is ready": 1,
		"kim@example.org: From my editor": 1,
		"ken@example.org: Lunch is ready": 1, "joe@example.org: This is sent": 1, "lou@example.org: The line is bad": 1,
		"page11@example.org: This is number 11": 1, "kay@example.org: Keys are enough": 1,
	}
	if diff := cmp.Diff(want, inBrowser(t, "console.mjs").mailbox()); diff != "" {
		t.Errorf("mailbox (-want +got):\n%s", diff)
	}
}

// TestSignInByRedirect signs the console's user in at the local issuer by a real redirect (testdata/redirect.mjs).
func TestSignInByRedirect(t *testing.T) {
	server := inBrowser(t, "redirect.mjs", "WEB_CLIENT_ID=countersign-dev")
	if diff := cmp.Diff(map[string]int{"ana@example.com: This waits": 1}, server.mailbox()); diff != "" {
		t.Errorf("mailbox (-want +got):\n%s", diff)
	}
}

// TestPeople checks that cards fit on small screens, and uses keys, links and tabs (testdata/people.mjs).
func TestPeople(t *testing.T) {
	inBrowser(t, "people.mjs")
}

// TestTold shows users notifications about waiting approvals on their own devices, and turns off the e-mails about them
// (testdata/told.mjs).
func TestTold(t *testing.T) {
	t.Parallel()
	drive(t, browsertest.NewWithWindows(t, "axe-core"), "told.mjs", "NOTIFY=mail",
		"NOTIFY_FROM=countersign@example.com", "SMTP_URL=smtp://127.0.0.1:9")
}

// TestDesk does the tasks of users other than decisions: they link accounts, name conversations, copy and undo
// (testdata/desk.mjs).
func TestDesk(t *testing.T) {
	inBrowser(t, "desk.mjs")
}

// TestReceipts opens a completed action, downloads its receipt, and verifies the receipt in the browser
// (testdata/receipt.mjs).
func TestReceipts(t *testing.T) {
	inBrowser(t, "receipt.mjs")
}

// TestFiles shows the files of a prompt on the run's page, and saves one (testdata/files.mjs).
func TestFiles(t *testing.T) {
	inBrowser(t, "files.mjs")
}

// TestAttach adds files to requests by the button, by drop and by paste (testdata/attach.mjs).
func TestAttach(t *testing.T) {
	inBrowser(t, "attach.mjs")
}

// TestUpload uploads files that are too large for a request (testdata/upload.mjs).
func TestUpload(t *testing.T) {
	inBrowser(t, "upload.mjs", "MAX_TOKENS_PER_DAY=0") // one file has more tokens than a user's daily limit
}

// TestMemory makes an agent note facts about its user, and edits, saves and deletes the notes and the preferences
// (testdata/memory.mjs). A server without such an agent has only the preferences (testdata/nomemory.mjs).
func TestMemory(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	dir := t.TempDir()
	aide := "name: aide\ninstruction: You help.\ntools: [remember, forget]\n"
	if err := os.WriteFile(filepath.Join(dir, "aide.agent.yaml"), []byte(aide), 0o600); err != nil {
		t.Fatal(err)
	}
	server := newDevServer(t)
	server.env = []string{"AGENTS=" + dir}
	server.start()
	browser.Run("testdata/memory.mjs", server.url, nil)
	server.stop()
	server.env = []string{"MEMORY=off"}
	server.start()
	browser.Run("testdata/nomemory.mjs", server.url, nil)
}

// TestDecided decides about many cards, and undoes decisions (testdata/decided.mjs).
func TestDecided(t *testing.T) {
	inBrowser(t, "decided.mjs")
}

// TestSeveral selects several cards, and decides about them with one gesture (testdata/several.mjs).
func TestSeveral(t *testing.T) {
	inBrowser(t, "several.mjs", "MAX_OPEN_APPROVALS=100", "MAX_APPROVALS_PER_DAY=200")
}
