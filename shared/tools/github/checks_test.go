package github_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// looking returns a local GitHub with a pull request from fix, and a function that calls its reading tools.
func looking(t *testing.T) (*env, func(tool string, args map[string]any, out any)) {
	t.Helper()
	w := open(t, github.CommitFiles, in(map[string]any{"branch": "main", "message": "x",
		"files": files("a", "a")}), "git/update-ref")
	w.Add(fakegithub.Seed{Owner: toolstest.GoogleUser, Name: "kit", Files: map[string]string{"a": "a"},
		Branches: map[string]string{"fix": "b"},
		Pulls:    []fakegithub.SeedPull{{Author: toolstest.GoogleUser, Title: "Fix", Head: "fix", Base: "main"}}})
	return w, func(tool string, args map[string]any, out any) {
		t.Helper()
		lookWith(t, w, local(), tool, args, out)
	}
}

// lookWith calls a reading tool of the set on the repository.
func lookWith(t *testing.T, w *env, tools tool.Set, name string, args map[string]any, out any) {
	t.Helper()
	args["owner"], args["repo"] = toolstest.GoogleUser, "kit"
	raw, err := json.Marshal(args)
	call := w.Call
	if err == nil {
		call.Args, err = tools[name].Normalize(raw)
	}
	if err == nil {
		raw, err = tools[name].Execute(t.Context(), call)
	}
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
}

// TestChecks lists the checks of a branch while they run, after one has failed, and when all are green.
func TestChecks(t *testing.T) {
	w, look := looking(t)
	wants := func(state string) (got github.Checks) {
		t.Helper()
		look(github.ListChecks, map[string]any{"ref": "fix"}, &got)
		if got.State != state {
			t.Errorf("the state is %+v; want %s", got, state)
		}
		return got
	}
	add := func(c fakegithub.Check) { w.AddCheck(toolstest.GoogleUser, "kit", "fix", c) }
	wants("none")
	add(fakegithub.Check{Name: "test", Status: "in_progress"})
	add(fakegithub.Check{Name: "docs", Status: "completed", Conclusion: "skipped"})
	add(fakegithub.Check{Name: "ci/lint", State: "success", Description: "Clean."})
	wants("pending")
	var lines strings.Builder
	for n := range 500 {
		fmt.Fprintf(&lines, "line %d\n", n)
	}
	add(fakegithub.Check{Name: "test", Status: "completed", Conclusion: "timed_out", Title: "1 failed",
		Summary: "TestA fails.", Text: lines.String()})
	got := wants("failure")
	var failed github.Check
	for _, c := range got.Checks {
		if c.Name == "test" {
			failed = c
		}
	}
	if len(got.Checks) != 3 || failed.Title != "1 failed" || failed.Summary != "TestA fails." ||
		!strings.HasPrefix(failed.Output, "line 300\n") || !strings.HasSuffix(failed.Output, "\nline 499") {
		t.Errorf("the checks are %+v", got)
	}
	add(fakegithub.Check{Name: "test", Status: "completed", Conclusion: "success"})
	wants("success")
	add(fakegithub.Check{Name: "ci/lint", State: "pending"})
	wants("pending")
	add(fakegithub.Check{Name: "ci/lint", State: "error"})
	wants("failure")
	var none *github.Checks
	if look(github.ListChecks, map[string]any{"ref": "none"}, &none); none != nil {
		t.Errorf("the checks of a missing branch are %+v", none)
	}
}

// TestReviewComments lists comments on lines, with the lines of the diff.
func TestReviewComments(t *testing.T) {
	w, look := looking(t)
	var got github.ReviewComments
	look(github.ListReviewComments, map[string]any{"prNumber": 1}, &got)
	if got.Comments == nil || len(got.Comments) != 0 {
		t.Errorf("without a review: %+v", got)
	}
	id := w.AddReview(toolstest.GoogleUser, "kit", 1, fakegithub.Review{Author: "other", Path: "fix", Line: 3,
		Body: "Why?"})
	w.AddReview(toolstest.GoogleUser, "kit", 1, fakegithub.Review{Author: toolstest.GoogleUser, Path: "fix", Line: 3,
		Body: "Because.", InReplyTo: id})
	look(github.ListReviewComments, map[string]any{"prNumber": 1}, &got)
	if len(got.Comments) != 2 || got.Comments[0].Body != "Why?" || got.Comments[0].Path != "fix" ||
		got.Comments[0].Line != 3 || got.Comments[0].Author != "other" || got.Comments[1].InReplyTo != id ||
		got.Comments[0].Hunk == "" || got.More {
		t.Errorf("the comments are %+v", got)
	}
}

// TestReplyToReply replies to a reply, which GitHub refuses, and to a comment of another pull request.
func TestReplyToReply(t *testing.T) {
	w := open(t, github.ReplyToReviewComment, in(map[string]any{"prNumber": 3, "commentId": 7, "body": "Because."}),
		"pulls/create-reply-for-review-comment")
	if id := w.AddReview(toolstest.GoogleUser, "site", 3, fakegithub.Review{Author: "other", Path: "open", Line: 1,
		Body: "Tell.", InReplyTo: 6}); id != 7 {
		t.Fatalf("the comment has the ID %d", id)
	}
	if end, out, err := w.CarryOut(t); end != toolstest.Completed || !strings.Contains(string(out), `"inReplyTo":6`) {
		t.Errorf("a reply to a reply: %s, %s, %v", end, out, err)
	}
	for name, change := range map[string]string{"another pull request": `"prNumber":2`, "no comment": `"commentId":99`} {
		was, _, _ := strings.Cut(change, ":")
		other := w.Call
		other.Args = json.RawMessage(regexp.MustCompile(was+`:\d+`).ReplaceAllString(string(w.Call.Args), change))
		if _, err := w.Tool.Prepare(t.Context(), other); !fault.Is(err, fault.Tool, "provider_refused") {
			t.Errorf("%s: %v; want error %v provider_refused", name, err, fault.Tool)
		}
	}
	if n := w.Effects(); n != 1 {
		t.Errorf("there are %d replies", n)
	}
}
