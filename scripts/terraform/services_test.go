package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// services are the services that resources need, by the beginning of the resources' types.
var services = map[string]string{"artifact_registry_": "artifactregistry", "billing_": "billingbudgets",
	"cloud_run_": "run", "cloud_scheduler_": "cloudscheduler", "cloudfunctions2_": "cloudfunctions",
	"compute_": "compute", "firebaserules_": "firebaserules", "firestore_": "firestore", "iam_": "iam",
	"kms_": "cloudkms", "logging_": "logging", "monitoring_": "monitoring", "project_": "cloudresourcemanager",
	"pubsub_": "pubsub", "secret_manager_": "secretmanager", "service_account": "iam", "storage_": "storage"}

var (
	resourceType = regexp.MustCompile(`(?m)^resource "google_([a-z0-9_]+)"`)
	required     = regexp.MustCompile(`required_providers \{\n    google = \{\n *source  = "hashicorp/google"\n` +
		` *version = ">= [0-9.]+, < [0-9]+"\n    \}\n  \}`)
)

// servicesAreEnabled checks that the bootstrap enables the service of every resource of the configuration.
func servicesAreEnabled(t testing.TB, w *workspace, bootstrap state) {
	t.Helper()
	enabled := map[string]bool{}
	for _, s := range resources[struct{ Service string }](t, bootstrap, "google_project_service") {
		enabled[strings.TrimSuffix(s.Service, ".googleapis.com")] = true
	}
	for file, text := range configuration(t, w.dir) {
		for _, m := range resourceType.FindAllStringSubmatch(text, -1) {
			service := ""
			for beginning, of := range services {
				if strings.HasPrefix(m[1], beginning) {
					service = of
				}
			}
			if !enabled[service] {
				t.Errorf("%s: google_%s needs the service %q, which the bootstrap does not enable", file, m[1], service)
			}
		}
	}
}

// providersArePinned checks that every folder with resources names Google's provider, with a lowest and a highest
// version, and no other provider.
func providersArePinned(t testing.TB, texts map[string]string) {
	t.Helper()
	with, pinned := map[string]bool{}, map[string]bool{}
	for file, text := range texts {
		dir := filepath.Dir(file)
		with[dir] = with[dir] || resourceType.MatchString(text)
		pinned[dir] = pinned[dir] || required.MatchString(text)
	}
	for dir, has := range with {
		if has && !pinned[dir] {
			t.Errorf("%s does not pin Google's provider, or has another one", dir)
		}
	}
}

const lockFile = ".terraform.lock.hcl"

// configuration returns the text of a repository's Terraform configuration and lock files, by file.
func configuration(t testing.TB, repository string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	dir := os.DirFS(filepath.Join(repository, root))
	if err := fs.WalkDir(dir, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".tf" && entry.Name() != lockFile {
			return err
		}
		text, err := fs.ReadFile(dir, path)
		texts[path] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return texts
}
