package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decoded reads the values of one resource.
func decoded[T any](t testing.TB, r resource) (v T) {
	t.Helper()
	if err := json.Unmarshal(r.Values, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// sink exports a part of the log.
type sink struct {
	Name, Destination, Filter string
	Disabled                  *bool
	Own                       bool `json:"unique_writer_identity"`
	Exclusions                []any
}

var (
	leastSeverity = regexp.MustCompile(`severity ?(>=|>|=) ?"?([A-Z]+)`)
	ofServices    = regexp.MustCompile(`service_name ?=~ ?"(\^[^"]+\$)"`)
)

// auditKept checks that the sinks keep the audit's lines of every function, which have the severity INFO. It also
// checks that they keep Google's audit logs about data access and about grants.
func auditKept(t testing.TB, s state) {
	t.Helper()
	functions := resources[running](t, s, "google_cloudfunctions2_function")
	if len(functions) == 0 {
		return
	}
	buckets := map[string]int{}
	for _, b := range resources[struct {
		ID   string
		Days int `json:"retention_days"`
	}](t, s, "google_logging_project_bucket_config") {
		buckets["logging.googleapis.com/"+b.ID] = b.Days
	}
	sinks := resources[sink](t, s, "google_logging_project_sink")
	if len(sinks) == 0 {
		t.Error("no sink keeps the audit's lines")
	}
	for _, k := range sinks {
		if days, known := buckets[k.Destination]; !known || days < 365 {
			t.Errorf("the sink %s keeps its lines for %d days", k.Name, days)
		}
		if k.Disabled != nil && *k.Disabled || !k.Own || len(k.Exclusions) > 0 {
			t.Errorf("the sink %s is disabled, has no writer, or leaves lines out", k.Name)
		}
		for _, log := range []string{"activity", "data_access"} {
			if !strings.Contains(k.Filter, `log_id("cloudaudit.googleapis.com/`+log+`")`) {
				t.Errorf("the sink %s leaves out the audit log %s", k.Name, log)
			}
		}
		for _, m := range leastSeverity.FindAllStringSubmatch(k.Filter, -1) {
			if m[1] != ">=" || !slices.Contains([]string{"DEFAULT", "DEBUG", "INFO"}, m[2]) {
				t.Errorf("the sink %s drops lines of the severity INFO", k.Name)
			}
		}
		of := ofServices.FindStringSubmatch(k.Filter)
		for _, f := range functions {
			if of == nil || !regexp.MustCompile(of[1]).MatchString(f.Name) {
				t.Errorf("the sink %s drops the lines of %s", k.Name, f.Name)
			}
		}
	}
	accessKept(t, s)
	onlyKeptAreExcluded(t, s, sinks)
}

// onlyKeptAreExcluded checks that a line is excluded from _Default only if a sink keeps it and no alert matches it.
// Google's documentation is contradictory about whether alerts see excluded lines. Alerts match accesses by people, and
// warnings of functions (TestAlertsLogFilters in infra).
func onlyKeptAreExcluded(t testing.TB, s state, sinks []sink) {
	t.Helper()
	for _, e := range resources[struct{ Name, Filter string }](t, s, "google_logging_project_exclusion") {
		accesses := e.Filter == `log_id("cloudaudit.googleapis.com/data_access") AND `+
			`protoPayload.authenticationInfo.principalEmail=~"gserviceaccount.com$"`
		lines, of := strings.HasSuffix(e.Filter, " AND severity=INFO"), ofServices.FindString(e.Filter)
		kept := slices.ContainsFunc(sinks, func(k sink) bool { return of != "" && strings.Contains(k.Filter, of) })
		if !accesses && (!lines || !kept) {
			t.Errorf("the exclusion %s leaves out lines that no sink keeps, or that an alert looks for: %s", e.Name,
				e.Filter)
		}
	}
}

// accessKept checks that Google records who reads and writes secrets, keys and documents, without exceptions.
func accessKept(t testing.TB, s state) {
	t.Helper()
	recorded := map[string]bool{}
	for _, c := range resources[struct {
		Service string
		Logs    []struct {
			Type   string   `json:"log_type"`
			Exempt []string `json:"exempted_members"`
		} `json:"audit_log_config"`
	}](t, s, "google_project_iam_audit_config") {
		for _, l := range c.Logs {
			recorded[c.Service+" "+l.Type] = len(l.Exempt) == 0
		}
	}
	for _, service := range []string{"secretmanager", "cloudkms", "datastore"} {
		for _, kind := range []string{"DATA_READ", "DATA_WRITE"} {
			if !recorded[service+".googleapis.com "+kind] {
				t.Errorf("Google does not record every %s of %s", kind, service)
			}
		}
	}
}

// bucketsHold checks that no bucket can be public, and that overwritten objects are kept. The deletion of an uploaded
// file is final.
func bucketsHold(t testing.TB, s state) {
	t.Helper()
	for _, b := range resources[struct {
		Name       string
		Uniform    bool   `json:"uniform_bucket_level_access"`
		Prevention string `json:"public_access_prevention"`
		Versioning []struct{ Enabled bool }
		SoftDelete []struct {
			Seconds int `json:"retention_duration_seconds"`
		} `json:"soft_delete_policy"`
	}](t, s, "google_storage_bucket") {
		if !b.Uniform || b.Prevention != "enforced" {
			t.Errorf("the bucket %s can be made public", b.Name)
		}
		switch versioned := len(b.Versioning) == 1 && b.Versioning[0].Enabled; {
		case strings.HasSuffix(b.Name, "-files"):
			if versioned || len(b.SoftDelete) != 1 || b.SoftDelete[0].Seconds != 0 {
				t.Errorf("the bucket %s keeps deleted files", b.Name)
			}
		case strings.HasSuffix(b.Name, "-log") && (len(b.SoftDelete) != 1 || b.SoftDelete[0].Seconds < 90*86400):
			t.Errorf("the bucket %s keeps no deleted objects of the log", b.Name)
		case !versioned:
			t.Errorf("the bucket %s keeps no older objects", b.Name)
		}
	}
}

// keysHold checks that keys that encrypt are rotated, that keys that sign use Ed25519, and that a destroyed version can
// be restored for a month.
func keysHold(t testing.TB, s state) {
	t.Helper()
	const day = 24 * 60 * 60
	for _, k := range resources[struct {
		Name    string
		Rotate  string `json:"rotation_period"`
		Destroy string `json:"destroy_scheduled_duration"`
		Purpose string
		Version []struct{ Algorithm string } `json:"version_template"`
	}](t, s, "google_kms_crypto_key") {
		switch {
		case k.Purpose == "ASYMMETRIC_SIGN":
			if len(k.Version) != 1 || k.Version[0].Algorithm != "EC_SIGN_ED25519" {
				t.Errorf("the key %s does not sign with Ed25519", k.Name)
			}
		case seconds(k.Rotate) < day || seconds(k.Rotate) > 90*day:
			t.Errorf("the key %s is rotated after %s", k.Name, k.Rotate)
		}
		if seconds(k.Destroy) < 30*day {
			t.Errorf("the key %s is lost %s after a mistake", k.Name, k.Destroy)
		}
	}
}

// databaseHolds checks that the database can be restored to any second of the last week and from its backups, and that
// its rules deny all clients.
func databaseHolds(t testing.TB, s state) {
	t.Helper()
	for _, db := range resources[struct {
		Name     string
		Recovery string `json:"point_in_time_recovery_enablement"`
		Protect  string `json:"delete_protection_state"`
		Deletion string `json:"deletion_policy"`
	}](t, s, "google_firestore_database") {
		if db.Recovery != "POINT_IN_TIME_RECOVERY_ENABLED" {
			t.Errorf("%s cannot be restored to a point in time", db.Name)
		}
		if (db.Protect == "DELETE_PROTECTION_ENABLED") != (db.Deletion == "ABANDON") {
			t.Errorf("%s is protected by Google (%s) or by Terraform (%s) alone", db.Name, db.Protect, db.Deletion)
		}
		kept := 0
		for _, b := range resources[struct{ Database, Retention string }](t, s, "google_firestore_backup_schedule") {
			if b.Database == db.Name && seconds(b.Retention) >= 7*24*60*60 {
				kept++
			}
		}
		if kept < 2 {
			t.Errorf("%s has %d schedules of backups that are kept for a week, want 2", db.Name, kept)
		}
		if !slices.ContainsFunc(resources[struct{ Name string }](t, s, "google_firebaserules_release"),
			func(r struct{ Name string }) bool { return r.Name == "cloud.firestore/"+db.Name }) {
			t.Errorf("no rules keep clients out of %s", db.Name)
		}
	}
	for _, r := range s.all(func(kind string) bool { return kind == "google_firebaserules_ruleset" }) {
		if strings.Count(string(r.Values), "allow ") != 1 || !strings.Contains(string(r.Values), ": if false;") {
			t.Errorf("%s lets clients in", r.Address)
		}
	}
}
