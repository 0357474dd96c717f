package github_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// reached returns the targets of a call: its repository, and the people that it names.
func reached(people func(args map[string]any) any) func(args map[string]any) []tool.Target {
	return func(args map[string]any) []tool.Target {
		out := []tool.Target{{Kind: github.TargetRepository, Value: args["owner"].(string) + "/" +
			args["repo"].(string)}}
		list, _ := people(args).([]any)
		for _, p := range list {
			out = append(out, tool.Target{Kind: github.TargetAccount, Value: p.(string)})
		}
		return out
	}
}

func nobody(map[string]any) any { return nil }

type changes = map[string]map[string]any

var elsewhere = changes{"owner": {"owner": "other"}, "repo": {"repo": "page"}}

func with(more changes) changes {
	all := maps.Clone(elsewhere)
	maps.Copy(all, more)
	return all
}

// nowhere lists invalid repositories (including FI-007) and values that are not numbers.
func nowhere(more map[string]toolstest.Refused) map[string]toolstest.Refused {
	all := map[string]toolstest.Refused{}
	for name, v := range map[string]string{"a slash": "a/b", "empty": "", "a dot": ".", "dots": "..",
		"ends in .git": "a.git", "a space": "a b", "a query": "a?b", "a look-alike": "s\u0456te", "an escape": "a%2fb",
		"long": strings.Repeat("a", 101), "a line": "a\nb"} {
		all["repo: "+name] = toolstest.Refused{Change: map[string]any{"repo": v}, Field: "repo"}
		if name != "dots" && name != "a dot" && name != "ends in .git" {
			all["owner: "+name] = toolstest.Refused{Change: map[string]any{"owner": v}, Field: "owner"}
		}
	}
	all["owner: a hyphen in front"] = toolstest.Refused{Change: map[string]any{"owner": "-a"}, Field: "owner"}
	maps.Copy(all, more)
	return all
}

func refused(field string, value any) toolstest.Refused {
	return toolstest.Refused{Change: map[string]any{field: value}, Field: field}
}

const someMark = "x <!-- countersign:action_1 -->"

var suites = map[string]toolstest.Suite{
	github.CreateIssue: {
		Args: in(map[string]any{"title": "Broken", "body": "The link.", "labels": []string{"bug"}}),
		Other: with(changes{"title": {"title": "Other"}, "body": {"body": "Other."},
			"labels":    {"labels": []string{"a"}},
			"assignees": {"assignees": []string{"ada"}}}),
		Free:   []string{"title", "body"},
		Labels: []string{"Repository", "Title", "Labels", "Assignees", "Text", "Mark"},
		Texts:  map[string]string{"title": "Title", "body": "Text"},
		Previews: map[string]toolstest.Shown{
			"all of it": {Want: []string{"Repository: good/site", "Title: Broken", "Labels: bug", "Text: The link.",
				"<!-- countersign:… -->"}},
			"someone": {Change: map[string]any{"assignees": []string{"zoe", "ada", "zoe"}}, Want: []string{"ada\nzoe"}},
			// FI-008: text that looks like a variable stays text.
			"text alone": {Change: map[string]any{"title": "@everyone", "body": "token $GITHUB_TOKEN"},
				Want: []string{"Title: @everyone", "Text: token $GITHUB_TOKEN"}},
		},
		Refused: nowhere(map[string]toolstest.Refused{
			"no title":         refused("title", " \t"),
			"a title of lines": refused("title", "a\nb"),
			"a long title":     refused("title", strings.Repeat("x", 257)),
			"a long body":      refused("body", strings.Repeat("x", 60_001)),
			"an escape":        refused("body", "a\x1b[2K"),
			"a mark":           refused("body", someMark),
			"a blank label":    {Change: map[string]any{"labels": []string{"a", " "}}, Field: "labels/1"},
			"two labels":       {Change: map[string]any{"labels": []string{"a,b"}}, Field: "labels/0"},
			"no login":         {Change: map[string]any{"assignees": []string{"@ada"}}, Field: "assignees/0"},
			"many labels":      refused("labels", strings.Split(strings.Repeat("a ", 20)+"a", " ")),
		}),
		Reached: reached(func(args map[string]any) any { return args["assignees"] }),
	},
	github.CreateComment: {
		Args:   in(map[string]any{"issueNumber": 1, "body": "Seen."}),
		Other:  with(changes{"issueNumber": {"issueNumber": 2}, "body": {"body": "Other."}}),
		Free:   []string{"body"},
		Labels: []string{"Repository", "Issue", "Text", "Mark"},
		Texts:  map[string]string{"body": "Text"},
		Previews: map[string]toolstest.Shown{"all of it": {Want: []string{"Issue: #1", "Text: Seen.",
			"<!-- countersign:… -->"}}},
		Refused: nowhere(map[string]toolstest.Refused{"blank": refused("body", "\n "), "a mark": refused("body",
			someMark),
			"no number": refused("issueNumber", 0)}),
		Reached: reached(nobody),
	},
	github.ReplyToReviewComment: {
		Args: in(map[string]any{"prNumber": 3, "commentId": 6, "body": "Because."}),
		Other: with(changes{"prNumber": {"prNumber": 2}, "commentId": {"commentId": 7},
			"body": {"body": "Other."}}),
		Free:   []string{"commentId", "body"},
		Labels: []string{"Repository", "Pull request", "Comment", "Text", "Mark"},
		Texts:  map[string]string{"body": "Text"},
		Previews: map[string]toolstest.Shown{"all of it": {Want: []string{"Pull request: #3",
			"Comment: #discussion_r6", "Text: Because.", "<!-- countersign:… -->"}}},
		Refused: nowhere(map[string]toolstest.Refused{"blank": refused("body", "\n "), "a mark": refused("body",
			someMark), "no comment": refused("commentId", 0),
			"no ID": refused("commentId", float64(1<<53))}),
		Reached: reached(nobody),
	},
	github.CreatePullRequest: {
		Args: in(map[string]any{"title": "Mend", "head": "fix/a", "base": "main", "body": "It is."}),
		Other: with(changes{"title": {"title": "Other"}, "head": {"head": "eve:fix"}, "base": {"base": "next"},
			"body": {"body": "Other."}}),
		Free:   []string{"title", "body"},
		Labels: []string{"Repository", "Title", "From the branch", "Into the branch", "Text", "Mark"},
		Texts:  map[string]string{"title": "Title", "body": "Text"},
		Previews: map[string]toolstest.Shown{"all of it": {Want: []string{"Title: Mend", "From the branch: fix/a",
			"Into the branch: main", "Text: It is."}}},
		Refused: nowhere(map[string]toolstest.Refused{
			"dots": refused("head", "a..b"), "a slash at the end": refused("base", "a/"),
			"a lock": refused("base", "a.lock"), "a whole ref": refused("base", "refs/heads/a"),
			"no account": refused("head", "-:a"), "no branch": refused("head", "eve:"), "a hyphen": refused("base",
				"-a"),
		}),
		Reached: reached(nobody),
	},
	github.CreateRepository: {
		Args: map[string]any{"name": "new", "description": "New."},
		Other: changes{"name": {"name": "newer"}, "description": {"description": "Other."},
			"isPrivate": {"isPrivate": true}},
		Free:   []string{"description"},
		Labels: []string{"Name", "Description", "Begins with", "Who may read it"},
		Texts:  map[string]string{"description": "Description"},
		Previews: map[string]toolstest.Shown{
			"public":  {Want: []string{"Name: new", "Who may read it: Everybody"}},
			"private": {Change: map[string]any{"isPrivate": true}, Want: []string{"Only those whom you let in"}},
		},
		Refused: map[string]toolstest.Refused{"a slash (FI-007)": refused("name", "a/b"), "dots": refused("name", ".."),
			"two lines": refused("description", "a\nb")},
		Reached: func(args map[string]any) []tool.Target {
			return []tool.Target{{Kind: github.TargetRepository, Value: args["name"].(string)}}
		},
	},
	github.UpdateIssue: {
		Args: in(map[string]any{"issueNumber": 1, "updates": map[string]any{"title": "Mended", "labels": []string{}}}),
		Other: with(changes{"issueNumber": {"issueNumber": 2},
			"updates":   {"updates": map[string]any{"title": "Mended", "labels": []string{"a"}}},
			"updatedAt": {"updatedAt": "2027-01-05T10:00:00+01:00"}}),
		Free: []string{"updatedAt"}, // it only restricts the call, and differs each time
		Labels: []string{"Repository", "Number", "Title", "State", "Labels", "Assignees", "Text",
			"Only if unchanged since"},
		Previews: map[string]toolstest.Shown{
			"some": {Want: []string{"Number: #1", "Title: Mended", "Labels: none"}},
			"all": {Change: map[string]any{"updatedAt": "2027-01-05T10:00:00+01:00", "updates": map[string]any{
				"title": "a", "body": "b", "state": "closed", "labels": []string{"b", "a"},
				"assignees": []string{"ada"}}},
				Want: []string{"Title: a", "Text: b", "State: closed", "Labels: a\nb", "Assignees: ada",
					"Only if unchanged since: 2027-01-05T09:00:00Z"}},
			"a text that goes": {Change: map[string]any{"updates": map[string]any{"body": ""}},
				Want: []string{"! The text is deleted"}},
		},
		Refused: nowhere(map[string]toolstest.Refused{
			"nothing": refused("updates", map[string]any{}),
			"a blank title": {Change: map[string]any{"updates": map[string]any{"title": " "}},
				Field: "updates/title"},
			"a state": {Change: map[string]any{"updates": map[string]any{"state": "merged"}}, Field: "updates/state"},
			"a mark":  {Change: map[string]any{"updates": map[string]any{"body": someMark}}, Field: "updates/body"},
			"no time": refused("updatedAt", "yesterday"),
		}),
		Reached: reached(func(args map[string]any) any { return args["updates"].(map[string]any)["assignees"] }),
	},
	github.CloseIssue: {
		Args: in(map[string]any{"issueNumber": 1}), Other: with(changes{"issueNumber": {"issueNumber": 2}}),
		Labels: []string{"Repository", "Number", "State"},
		Previews: map[string]toolstest.Shown{"all of it": {Want: []string{"Close an issue", "Number: #1",
			"State: closed"}}},
		Refused: nowhere(map[string]toolstest.Refused{"no number": refused("issueNumber", -1)}),
		Reached: reached(nobody),
	},
	github.UpdatePullRequest: {
		Args: in(map[string]any{"prNumber": 3, "updates": map[string]any{"base": "next", "body": "b"}}),
		Other: with(changes{"prNumber": {"prNumber": 2}, "updates": {"updates": map[string]any{"base": "main"}},
			"updatedAt": {"updatedAt": "2027-01-05T10:00:00Z"}}),
		Free: []string{"updatedAt"},
		Labels: []string{"Repository", "Number", "Title", "State", "Into the branch", "Text",
			"Only if unchanged since"},
		Previews: map[string]toolstest.Shown{"some": {Want: []string{"Number: #3", "Into the branch: next",
			"Text: b"}}},
		Refused: nowhere(map[string]toolstest.Refused{
			"a base": {Change: map[string]any{"updates": map[string]any{"base": "a b"}}, Field: "updates/base"},
			"the base of what is closed": {Change: map[string]any{"updates": map[string]any{"base": "a",
				"state": "closed"}}, Field: "updates/base"},
		}),
		Reached: reached(nobody),
	},
	github.ClosePullRequest: {
		Args: in(map[string]any{"prNumber": 3}), Other: with(changes{"prNumber": {"prNumber": 2}}),
		Labels:   []string{"Repository", "Number", "State"},
		Previews: map[string]toolstest.Shown{"all of it": {Want: []string{"Close a pull request", "Number: #3"}}},
		Refused:  nowhere(nil),
		Reached:  reached(nobody),
	},
	github.CommitFiles: {
		Args: in(map[string]any{"branch": "main", "message": "Mend it", "files": files("README.md", "# Mended\n")}),
		Other: with(changes{"branch": {"branch": "fix"}, "from": {"from": "next"}, "message": {"message": "Other"},
			"files":       {"files": files("docs/a.md", "a")},
			"containerId": {"containerId": boxID, "files": []any{taken("README.md", "", "x")}}}),
		Free: []string{"message"},
		Labels: []string{"Repository", "Branch", "New, from the branch", "Message", "Write README.md",
			"Write docs/a.md", "Container",
			"Delete docs/a.md", "Write .github/workflows/a.yml", "Replace in README.md, 1", "With, 1"},
		Texts: map[string]string{"message": "Message"},
		Previews: map[string]toolstest.Shown{
			"all of it": {Want: []string{"Branch: main", "Message: Mend it", "Write README.md: # Mended"}},
			"one that goes, on a new branch": {Change: map[string]any{"from": "next", "files": []any{
				map[string]any{"path": "docs/a.md", "delete": true}}}, Want: []string{"Delete docs/a.md",
				"New, from the branch: next"}},
			"from a container": {Change: map[string]any{"containerId": boxID, "files": []any{
				taken("README.md", "out/a", "x")}}, Want: []string{"Container: " + boxID,
				"Write README.md: /work/out/a in the container, with the SHA-256 " + sumOf("x"),
				"! Files from the container are not shown here"}},
			"edits": {Change: map[string]any{"files": []any{edited("README.md", someSHA, "Old", "New")}},
				Want: []string{"Replace in README.md, 1: Old", "With, 1: New"}},
			"one that is run": {Change: map[string]any{"files": files(".github/workflows/a.yml", "on: push")},
				Want: []string{"! Look closely at .github/workflows/a.yml: a build service runs it."}},
		},
		Refused: nowhere(map[string]toolstest.Refused{
			"no files":        refused("files", []any{}),
			"no message":      refused("message", "\n"),
			"from itself":     refused("from", "main"),
			"a path of steps": {Change: map[string]any{"files": files("a/../b", "x")}, Field: "files/0/path"},
			"a root":          {Change: map[string]any{"files": files("/a", "x")}, Field: "files/0/path"},
			"git's own": {Change: map[string]any{"files": files("a/.GIT/config", "x")},
				Field: "files/0/path"},
			"no text": {Change: map[string]any{"files": files("a", "\x00")}, Field: "files/0/content"},
			"a sum without a container": {Change: map[string]any{"files": []any{taken("a", "", "x")}},
				Field: "containerId"},
			"a container without a sum": refused("containerId", boxID),
			"a path without a sum": {Change: map[string]any{"containerId": boxID, "files": []any{map[string]any{
				"path": "a", "source": "b"}}}, Field: "files/0/sha256"},
			"both": {Change: map[string]any{"containerId": boxID, "files": []any{map[string]any{"path": "a",
				"content": "x", "sha256": sumOf("x")}}}, Field: "files/0/sha256"},
			"edits without a sha": {Change: map[string]any{"files": []any{edited("a", "", "b", "c")}},
				Field: "files/0/sha"},
			"edits beside content": {Change: map[string]any{"files": []any{map[string]any{"path": "a", "content": "x",
				"sha": someSHA, "edits": edits("b", "c")}}}, Field: "files/0/edits"},
			"a sha without edits": {Change: map[string]any{"files": []any{map[string]any{"path": "a", "content": "x",
				"sha": someSHA}}}, Field: "files/0/edits"},
			"an edit of nothing": {Change: map[string]any{"files": []any{edited("a", someSHA, "", "c")}},
				Field: "files/0/edits/0/old"},
			"an edit to the same": {Change: map[string]any{"files": []any{edited("a", someSHA, "b", "b")}},
				Field: "files/0/edits/0/new"},
			"a source of two lines": {Change: map[string]any{"containerId": boxID, "files": []any{taken("a", "b\nc",
				"x")}}, Field: "files/0/source"},
			"a file twice":        refused("files", append(files("a", "x"), files("a", "y")...)),
			"a folder of another": refused("files", append(files("a", "x"), files("a/b", "y")...)),
			"too much": refused("files", append(files("a", strings.Repeat("x", 1<<17+1)), files("b",
				strings.Repeat("x", 1<<17))...)),
		}),
		Reached: reached(nobody),
	},
}

func files(path, content string) []any {
	return []any{map[string]any{"path": path, "content": content}}
}

const someSHA = "0123456789abcdef0123456789abcdef01234567"

func edits(old, with string) []any { return []any{map[string]any{"old": old, "new": with}} }

// edited returns a file of a commit in which one text is replaced. An empty sha names no version.
func edited(path, sha, old, with string) map[string]any {
	f := map[string]any{"path": path, "edits": edits(old, with)}
	if sha != "" {
		f["sha"] = sha
	}
	return f
}

func suite(name string) toolstest.Suite {
	s := suites[name]
	s.Tool = local()[name]
	return s
}

func TestSuites(t *testing.T) {
	for name, tl := range local() {
		if tl.SideEffect {
			t.Run(name, func(t *testing.T) { suite(name).Run(t) })
		} else if !tl.Untrusted || tl.Class != tool.ClassRead {
			t.Errorf("%s reads, and is trusted or of class %s", name, tl.Class)
		}
	}
}

// TestNormalizeSets passes sets in another order and with duplicates: a grant's target is compared byte for byte.
func TestNormalizeSets(t *testing.T) {
	s := suite(github.CreateIssue)
	bound := func(labels ...string) string {
		args, err := s.Tool.Normalize(s.With(map[string]any{"labels": labels, "title": strings.Join(labels, " ")}))
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Tool.Pinned(args)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if a, b := bound("b", "a", "b"), bound("a", "b"); a != b || !strings.Contains(a, `"labels":["a","b"]`) {
		t.Errorf("bound is %s, and %s", a, b)
	}
}

// TestTargetForm checks that targets of a plan may have sets in any order and may lack the free text.
func TestTargetForm(t *testing.T) {
	tools := github.New(accounts{}, github.Options{Endpoint: "http://github.test/"})
	for name, args := range map[string]struct{ target, call string }{
		github.CreateIssue: {
			`{"repo":"web","owner":"acme","labels":["b","a","b"],"assignees":["zoe","ada"]}`,
			`{"owner":"acme","repo":"web","title":"One","body":"Two","labels":["a","b"],"assignees":["ada","zoe"]}`},
		github.UpdateIssue: {
			`{"owner":"acme","repo":"web","issueNumber":1,"updates":{"labels":["b","a"],"assignees":[]}}`,
			`{"owner":"acme","repo":"web","issueNumber":1,"updates":{"title":"One","labels":["a","b"],"assignees":[]}}`},
		github.CommitFiles: {
			`{"owner":"acme","repo":"web","branch":"mend","files":[{"path":"b"},{"path":"a","delete":true}]}`,
			`{"owner":"acme","repo":"web","branch":"mend","message":"Mend","files":[{"path":"a","delete":true},` +
				`{"path":"b","content":"B"}]}`},
	} {
		want, err := tools[name].Normalize(json.RawMessage(args.call))
		if err == nil {
			want, err = tools[name].Pinned(want)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := tools[name].Pinned(json.RawMessage(args.target)); err != nil || string(got) != string(want) {
			t.Errorf("%s: the target is %s, its calls %s (%v)", name, got, want, err)
		}
	}
}

// TestPinnedWithoutFreeText checks that the pinned arguments of each tool have no text that is written only when the
// call is made.
func TestPinnedWithoutFreeText(t *testing.T) {
	tools := github.New(accounts{}, github.Options{Endpoint: "http://github.test/"})
	for name, args := range map[string]string{
		github.CreateIssue:       `{"owner":"acme","repo":"web","title":"One"}`,
		github.CreateComment:     `{"owner":"acme","repo":"web","issueNumber":1,"body":"One"}`,
		github.CreatePullRequest: `{"owner":"acme","repo":"web","title":"One","head":"a","base":"b"}`,
	} {
		bound, err := tools[name].Pinned(json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		var has map[string]any
		if err := json.Unmarshal(bound, &has); err != nil {
			t.Fatal(err)
		}
		if has["title"] != nil || has["body"] != nil || has["owner"] != "acme" || has["repo"] != "web" {
			t.Errorf("%s is bound to %s", name, bound)
		}
	}
}

// FuzzArguments checks that accepted arguments have the properties that the policy and approvals rely on.
func FuzzArguments(f *testing.F) {
	names := slices.Sorted(maps.Keys(suites))
	for i, name := range names {
		f.Add(byte(i), string(suite(name).With(nil)))
	}
	f.Add(byte(slices.Index(names, github.CommitFiles)),
		`{"owner":"a","repo":"b","branch":"c","message":"d","files":[{"path":"e","delete":true}]}`)
	f.Fuzz(func(t *testing.T, which byte, raw string) {
		name := names[int(which)%len(names)]
		s := suite(name)
		if name == github.CommitFiles { // the labels of its preview are paths
			args, err := s.Tool.Normalize(json.RawMessage(raw))
			if err != nil {
				return
			}
			var in github.NewCommit
			if err := json.Unmarshal(args, &in); err != nil {
				t.Fatal(err)
			}
			for _, f := range in.Files {
				s.Labels = append(s.Labels, "Write "+f.Path, "Delete "+f.Path)
			}
		}
		s.Holds(t, json.RawMessage(raw))
	})
}
