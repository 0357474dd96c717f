package main

import (
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	lockOf = regexp.MustCompile(`(?s)provider "([^"]+)" \{\n  version     = "([^"]+)"\n  constraints = "([^"]+)"\n` +
		`  hashes = \[\n(.+?)  \]\n\}\n`)
	archiveHash = regexp.MustCompile(`(?m)^    "zh:[0-9a-f]{64}",$`)
)

// holdTexts checks properties that only the text of the configuration shows. texts has the contents by file name.
func holdTexts(t testing.TB, texts map[string]string) {
	t.Helper()
	providersArePinned(t, texts)
	providersAreLocked(t, texts)
	invokersAreRenewed(t, texts)
	projectsPay(t, texts)
	replacedFirst(t, texts)
}

// replacedFirst checks that a new archive, certificate or ruleset exists before the old one is destroyed.
func replacedFirst(t testing.TB, texts map[string]string) {
	t.Helper()
	for _, file := range []string{"modules/function/main.tf", "modules/agent/certificate.tf",
		"modules/agent/rules.tf"} {
		if !strings.Contains(texts[file], "\n    create_before_destroy = true\n") {
			t.Errorf("%s destroys something before it is replaced", file)
		}
	}
}

// projectsPay checks that Google counts the calls of both roots against the quotas of the environment's project,
// whatever project the person who runs terraform apply has selected.
func projectsPay(t testing.TB, texts map[string]string) {
	t.Helper()
	for _, file := range []string{"main.tf", "bootstrap/main.tf"} {
		if !strings.Contains(texts[file],
			"\n  user_project_override = true\n  billing_project       = var.project_id\n") {
			t.Errorf("%s uses the quotas of another project", file)
		}
	}
}

// providersAreLocked checks that each root has a lock file with only Google's provider, in the version whose schema the
// tests plan with, and with the hashes of its archives for all platforms. Terraform refuses an archive with another
// hash.
func providersAreLocked(t testing.TB, texts map[string]string) {
	t.Helper()
	for _, root := range []string{"", "bootstrap/"} {
		locks := lockOf.FindAllStringSubmatch(texts[root+lockFile], -1)
		switch {
		case len(locks) != 1 || locks[0][1] != google:
			t.Errorf("%s%s does not lock exactly Google's provider", root, lockFile)
		case locks[0][2] != version || locks[0][3] != ">= 6.50.0, < 9.0.0":
			t.Errorf("%s%s locks %s within %s, want %s as in the tests", root, lockFile, locks[0][2], locks[0][3],
				version)
		case len(archiveHash.FindAllString(locks[0][4], -1)) < 12: // 11 platforms and the manifest
			t.Errorf("%s%s lacks the hashes of some platforms", root, lockFile)
		}
	}
	if texts[lockFile] != texts["bootstrap/"+lockFile] {
		t.Error("the two roots lock different providers")
	}
}

// invokersAreRenewed checks that a function that is created again also gets its invoker again, because the grant is on
// the underlying service.
func invokersAreRenewed(t testing.TB, texts map[string]string) {
	t.Helper()
	_, after, _ := strings.Cut(texts["modules/function/main.tf"],
		`resource "google_cloud_run_v2_service_iam_member" "invoker"`)
	body, _, _ := strings.Cut(after, "\n}\n")
	if !strings.Contains(body, "\n    replace_triggered_by = [google_cloudfunctions2_function.this.id]") {
		t.Error("a function that is created again has no invoker")
	}
}

// textFaults are planted in the text of a file. want is a part of the error that the fault must cause.
var textFaults = []struct{ file, old, new, want string }{
	{lockFile, `"6.50.0"`, `"6.49.0"`, "locks 6.49.0"},
	{lockFile, `"zh:1f`, `"h1:1f`, "lacks the hashes"},
	{lockFile, "hashicorp/google", "hashicorp/google-beta", "exactly Google's provider"},
	{"bootstrap/" + lockFile, `"zh:1f`, `"zh:2f`, "lock different providers"},
	{"modules/agent/versions.tf", `>= 6.50, < 9`, `>= 6.50`, "does not pin"},
	{"modules/function/main.tf", "replace_triggered_by", "# replace_triggered_by", "created again"},
	{"modules/function/main.tf", "google_cloudfunctions2_function.this.id]", "]", "created again"},
	{"modules/function/main.tf", "    create_before_destroy = true", "", "before it is replaced"},
	{"modules/agent/certificate.tf", "create_before_destroy = true", "create_before_destroy = false", "it is replaced"},
	{"main.tf", "  billing_project       = var.project_id", "", "quotas of another project"},
	{"bootstrap/main.tf", "user_project_override = true", "user_project_override = false", "quotas of another project"},
}

// TestTexts checks the text of the configuration, and that each planted fault is noticed.
func TestTexts(t *testing.T) {
	texts := configuration(t, filepath.Join("..", ".."))
	holdTexts(t, texts)
	for _, f := range textFaults {
		changed := maps.Clone(texts)
		changed[f.file] = strings.Replace(texts[f.file], f.old, f.new, 1)
		seen := &recorder{TB: t}
		holdTexts(seen, changed)
		if changed[f.file] == texts[f.file] || !strings.Contains(strings.Join(seen.errors, "\n"), f.want) {
			t.Errorf("%s with %s: the checks report %q, want %q", f.file, f.new, seen.errors, f.want)
		}
	}
}
