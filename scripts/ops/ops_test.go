package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
)

func TestStoryWithoutContents(t *testing.T) { onBothStores(t, storyWithoutItsContents) }

func storyWithoutItsContents(w *deployment) {
	t := w.t
	id := w.mail(true)
	text := w.prints([]string{"run " + id + " of ana: completed", "run.queued", "approve_once by ana",
		"execution succeeded", "outcome", "chain: whole"}, "story", id)
	asJSON := w.prints(nil, "story", "-json", id)
	for _, out := range []string{text, asJSON} {
		if strings.Contains(out, canary) || strings.Contains(out, "bob@") {
			t.Errorf("the story shows contents without -reveal:\n%s", out)
		}
	}
	var s Story
	if err := json.Unmarshal([]byte(asJSON), &s); err != nil {
		t.Fatal(err)
	}
	last := s.Events[len(s.Events)-1]
	if s.UID != "ana" || len(s.Approvals) != 1 || s.Approvals[0].DecidedBy != "ana" ||
		last.Seq != int64(len(s.Events)) || len(s.Audit) != 4 || len(s.Chain) != 0 || !s.Vouched {
		t.Errorf("the story is %+v", s)
	}
	out, errs, err := w.ops("story", id, "-reveal")
	if err != nil || !strings.Contains(out, canary) || !strings.Contains(out, "bob@example.com") ||
		!strings.Contains(errs, "keep it out of tickets and logs") {
		t.Errorf("%v: revealed: %s%s", err, out, errs)
	}
}

func TestStoryOfTamperedEntry(t *testing.T) { onBothStores(t, storyOfATamperedChain) }

func storyOfATamperedChain(w *deployment) {
	t := w.t
	id := w.mail(true)
	if _, err := w.App.Store.Commit(t.Context(), store.Delete("audit/"+id+"_000002", time.Time{})); err != nil {
		t.Fatal(err)
	}
	if out := w.prints([]string{"chain: "}, "story", id); strings.Contains(out, "chain: whole") ||
		!strings.Contains(out, "2") {
		t.Errorf("the removed entry is not reported:\n%s", out)
	}
}

func TestRedrive(t *testing.T) { onBothStores(t, redriven) }

func redriven(w *deployment) {
	t := w.t
	waiting, ended := w.mail(false), w.mail(true)
	w.prints([]string{"is awaiting_confirmation", "1 of its calls wait for a decision", "resume published"},
		"redrive",
		waiting)
	if n, err := w.Deliver(t.Context()); err != nil || n != 1 {
		t.Fatalf("%v: %d resumes were delivered", err, n)
	}
	if out := w.prints([]string{"is completed", "nothing to move"}, "redrive", ended); strings.Contains(out,
		"published") {
		t.Errorf("redrive published a resume of an ended run: %s", out)
	}
	docs, err := w.App.Store.Get(t.Context(), document.RunPath(waiting))
	if err == nil {
		_, err = w.App.Store.Commit(t.Context(),
			store.Update(docs[0].Path, docs[0].Version, docs[0].Fields, []byte(`{"id":5}`)))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.prints([]string{"cannot be read here", "resume published"}, "redrive", waiting)
	w.prints([]string{"runs: 2", "run " + waiting + " is awaiting_confirmation, 1 approvals wait"}, "delete-user",
		"ana")
}

func TestRevokeAndEnable(t *testing.T) { onBothStores(t, revokedAndEnabled) }

func revokedAndEnabled(w *deployment) {
	t := w.t
	id := w.mail(false)
	w.prints([]string{"would be disabled", "1 approvals wait", "-yes does it"}, "revoke", "ana")
	if got, err := w.Ask(t.Context(), "ana", "hello"); err != nil || got.HTTP != 200 {
		t.Fatalf("%v: a dry run disabled ana: %d", err, got.HTTP)
	}
	w.prints([]string{"user disabled;", "the account was unlinked",
		"run " + id + " is awaiting_confirmation, 1 approvals wait"}, "revoke", "ana", "-yes")
	if got, err := w.Ask(t.Context(), "ana", "hello"); err != nil || got.HTTP != 401 {
		t.Fatalf("%v: %d", err, got.HTTP)
	}
	w.prints([]string{"would be enabled", "disabled: true"}, "enable", "ana")
	w.prints([]string{"user enabled"}, "enable", "ana", "-yes")
	w.prints([]string{"was not disabled"}, "enable", "-yes", "ana")
	w.SetModel(testkit.Says("Hello."))
	if got, err := w.Ask(t.Context(), "ana", "hello"); err != nil || got.Status != "completed" {
		t.Fatalf("%v: %s", err, got.Body)
	}
}

func TestDeleteAndExport(t *testing.T) { onBothStores(t, deletedAndExported) }

func deletedAndExported(w *deployment) {
	t := w.t
	id := w.mail(true)
	w.mail(false)
	w.prints([]string{`{"kind":"user"`, "mail " + canary, `"kind":"audit"`}, "export", "ana")
	w.prints([]string{"would be disabled", "runs: 2, threads: 2"}, "delete-user", "ana")
	w.prints([]string{`"kind":"run"`}, "export", "ana") // the previous command was a dry run
	w.prints([]string{"deleted; the account was unlinked"}, "delete-user", "ana", "-yes")
	if out := w.prints([]string{`"disabled":true`}, "export", "ana"); strings.Contains(out, canary) ||
		strings.Contains(out, `"kind":"run"`) {
		t.Errorf("data left after the deletion:\n%s", out)
	}
	w.prints([]string{"run " + id + " of ana: deleted", "chain: whole"}, "story", id)
}

func TestSmoke(t *testing.T) {
	w := newDeployment(t)
	w.SetModel(demomodel.Model(time.Now))
	token, err := w.SignIn(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.prints([]string{"0 findings", "it needs a second user"}, "smoke", w.Base, "-token", token)
	if n := len(w.Google.Messages()); n != 0 {
		t.Errorf("%d e-mails were sent", n)
	}
	w.SetModel(testkit.Says("I would rather not."))
	if out, _, err := w.ops("smoke", w.Base, "-token", token); !errors.Is(err, errFailed) {
		t.Errorf("a model that calls nothing passes: %v\n%s", err, out)
	}
}

func TestRefused(t *testing.T) {
	w := newDeployment(t)
	for want, args := range map[string][]string{
		"the commands are action-key, audit, checkpoint, ": {"delete"},
		"story takes only RUN and flags":                   {"story"},
		"setup takes no arguments":                         {"setup", "x"},
		"redrive takes only RUN":                           {"redrive"},
		"RUN is not a valid run ID":                        {"story", "../x"},
		"no run":                                           {"story", "abcdefghijklmnop"},
		"USER is not a valid user ID":                      {"revoke", "a/b", "-yes"},
		"QUEUE is embedded":                                {"dead-letters", "list"},
		"use list, replay or drop":                         {"dead-letters", "purge"},
		"-limit is 0":                                      {"dead-letters", "list", "-limit", "0"},
		"BASE is \"localhost\"":                            {"smoke", "localhost"},
	} {
		if out, _, err := w.ops(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q\n%s", args, err, want, out)
		}
	}
	err := execute(context.Background(), []string{"export", "ana"},
		func(name string) string { return map[string]string{"DATA_DIR": w.env["DATA_DIR"] + "/none"}[name] },
		&strings.Builder{}, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "contains no store") {
		t.Errorf("a missing store: %v", err)
	}
}
