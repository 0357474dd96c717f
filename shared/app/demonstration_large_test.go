package app_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/podman"
)

// tableFile is a source file of 60 KB. The fault is in its last function.
const tableFile = "lib/table.sh"

// table returns the source file with its last function.
func table(last string) string {
	var b strings.Builder
	b.WriteString("# table.sh holds the functions of the table.\n")
	for n := 0; b.Len() < 60<<10; n++ {
		fmt.Fprintf(&b, "\n# row%04d prints the row %d of the table, with its number and the name of the row.\n"+
			"row%04[1]d() {\n\techo \"row %[1]d\"\n}\n", n, n)
	}
	return b.String() + "\nadd() {\n\t" + last + "}\n"
}

// large is a repository of 300 files in 12 folders.
func large() fakegithub.Seed {
	s := toMend
	s.Files = map[string]string{"README.md": "Adds numbers.\n", tableFile: table(minus),
		"test.sh": "#!/bin/sh\nset -e\n. ./lib/table.sh\nfor n in $(seq 1000); do echo \"ok  $n + 0\"; done\n" +
			"got=$(add 2 3)\n[ \"$got\" = 5 ] || { echo \"FAIL: 2 + 3 is $got; want 5\"; exit 1; }\n" +
			"[ $(find . -name '*.txt' | wc -l) = 297 ] || { echo 'FAIL: files are missing'; exit 1; }\necho PASS\n"}
	for n := range 297 {
		s.Files[fmt.Sprintf("pages/%02d/section %d/page-%d.txt", n%12, n%5, n)] = strings.Repeat("A line.\n", n+1)
	}
	return s
}

// mendingLarge returns the model's calls. It reads the end of the long file by its offset.
func (d *demonstration) mendingLarge() []func(string) (string, map[string]any) {
	in := func(more map[string]any) map[string]any {
		more["owner"], more["repo"] = "acme", "web"
		return more
	}
	file := func(more map[string]any) map[string]any {
		more["containerId"], more["path"] = "{BOX}", tableFile
		return more
	}
	edit := func(old, with string) []any { return []any{map[string]any{"old": old, "new": with}} }
	script := map[string]any{"containerId": "{BOX}", "script": "sh test.sh"}
	commit := func(message string, edits []any, more map[string]any) map[string]any {
		maps.Copy(more, map[string]any{"branch": "fix", "message": message,
			"files": []any{map[string]any{"path": tableFile, "sha": "{BLOB}", "edits": edits}}})
		return in(more)
	}
	return []func(string) (string, map[string]any){
		d.remembers("The issue is read", "github.readIssue", in(map[string]any{"issueNumber": 1})),
		d.remembers("The commit is found", "github.listFiles", in(map[string]any{})),
		d.remembers("It is checked out", "docker.createContainer", map[string]any{"options": map[string]any{
			"image": podman.Image, "memory": 64,
			"checkout": map[string]any{"owner": "acme", "repo": "web", "commit": "{COMMIT}"}}}),
		d.remembers("The test fails", "docker.executeScript", script),
		d.remembers("The file is read", "docker.readFileInContainer", file(map[string]any{})),
		d.remembers("Its end is read", "docker.readFileInContainer", file(map[string]any{"offset": next})),
		d.remembers("It is patched", "docker.editFile", file(map[string]any{"sha256": "{SUM}",
			"edits": edit(minus, plus)})),
		d.remembers("The test passes", "docker.executeScript", script),
		d.remembers("The branch's file is read", "github.readFile", in(map[string]any{"path": tableFile})),
		d.remembers("Its end is read", "github.readFile", in(map[string]any{"path": tableFile, "offset": next})),
		d.remembers("The patch is committed", "github.commitFiles", commit("Add instead of subtracting",
			edit(minus, plus), map[string]any{"from": "main"})),
		d.remembers("A pull request is opened", "github.createPullRequest", in(map[string]any{"head": "fix",
			"base": "main", "title": "Add instead of subtracting", "body": "The sum was a difference."})),
		d.remembers("A check fails", "github.waitForChecks", in(map[string]any{"ref": "fix"}), d.check("failure")),
		d.remembers("The end is read again", "github.readFile", in(map[string]any{"path": tableFile, "ref": "fix",
			"offset": next})),
		d.remembers("A second commit", "github.commitFiles", commit("Quote the sum", edit(plus, quoted),
			map[string]any{})),
		d.remembers("All checks are green", "github.waitForChecks", in(map[string]any{"ref": "fix"}),
			d.check("success")),
	}
}

// TestDemonstrationInLargeRepository is the demonstration with 300 files, one of them of 60 KB. The patch is
// at the end of that file, which the first read does not reach. No card shows more of the file than the diff.
//
//	go test ./shared/app -run TestDemonstrationInLargeRepository -v
func TestDemonstrationInLargeRepository(t *testing.T) {
	d, engine := demonstrate(t, large(), "lib/table.sh: quote the sum")
	told, cards := d.completed(d.mendingLarge())
	says(t, told, map[int]string{1: `"pages/08/section 1/page-296.txt"`, 2: `"files":300,"leftOut":0`,
		3: `FAIL: 2 + 3 is -1; want 5\n`, 4: `"truncated":true`, 5: `echo $(($1 - $2))\n}\n"`, 7: `PASS\n`,
		8: `"truncated":true`, 9: `echo $(($1 - $2))\n}\n"`, 12: "lib/table.sh: quote the sum",
		13: `echo $(($1 + $2))\n}\n"`, 15: `"state":"success"`})
	for at, result := range told {
		if len(result) > 64<<10 || at != 4 && at != 8 && strings.Contains(result, `"truncated":true`) {
			t.Errorf("result %d has %d bytes: %.300s", at, len(result), result)
		}
	}
	shown := strings.Join(cards, "\n")
	for diff, n := range map[string]int{"-\t" + minus + "+\t" + plus: 2, "-\t" + plus + "+\t" + quoted: 1} {
		if strings.Count(shown, diff) != n {
			t.Errorf("the diff %q is on %d cards; want %d", diff, strings.Count(shown, diff), n)
		}
	}
	if strings.Contains(shown, "row0100") || !strings.Contains(shown, "+1 −1") {
		t.Errorf("the cards show more than the diffs: %s", shown)
	}
	commits := d.GitHub.Commits("acme", "web", "fix")
	if len(commits) != 3 || commits[0].Files[tableFile] != table(quoted) ||
		commits[1].Files[tableFile] != table(plus) || len(commits[0].Files) != 300 ||
		d.GitHub.Effects("pulls/create") != 1 {
		t.Errorf("the branch has %d commits, the last with %d files", len(commits), len(commits[0].Files))
	}
	if n := engine.Containers(); n != 0 {
		t.Errorf("%d containers are left", n)
	}
}
