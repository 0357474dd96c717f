package main

import (
	"regexp"
	"strings"
	"testing"
)

const (
	aPerson      = "ken@acme.com"
	aFunction    = "agent-run@acme-prod.iam.gserviceaccount.com"
	anApply      = "agent-tf-apply@acme-prod.iam.gserviceaccount.com"
	googleItself = "service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
)

// auditLines are entries of Google's audit log, by method and principal, and whether an alert must match them. The
// method names are those in Google's documentation of each service's audit logs.
var auditLines = []struct {
	method, principal string
	noticed           bool
}{
	{"google.firestore.v1.Firestore.Commit", aPerson, true},
	{"google.firestore.v1.Firestore.Write", aPerson, true},
	{"google.firestore.v1.Firestore.BatchWrite", aPerson, true},
	{"google.firestore.v1.Firestore.Commit", aFunction, false},
	{"google.firestore.v1.Firestore.RunQuery", aPerson, false},
	{"google.firestore.admin.v1.FirestoreAdmin.ImportDocuments", aPerson, true},
	{"google.firestore.admin.v1.FirestoreAdmin.BulkDeleteDocuments", aPerson, true},
	{"google.firestore.admin.v1.FirestoreAdmin.DeleteDatabase", aPerson, true},
	{"google.firestore.admin.v1.FirestoreAdmin.DeleteBackupSchedule", aPerson, true},
	{"SetIamPolicy", aPerson, true}, {"SetIamPolicy", aFunction, true},
	{"SetIamPolicy", anApply, false}, {"SetIamPolicy", googleItself, false},
	{"google.iam.v1.IAMPolicy.SetIamPolicy", aPerson, true},
	{"google.cloud.run.v1.Services.SetIamPolicy", aPerson, true},
	{"storage.setIamPermissions", aPerson, true},
	{"google.iam.admin.v1.CreateServiceAccountKey", aPerson, true},
	{"google.iam.admin.v1.UpdateRole", aPerson, true},
	{"google.logging.v2.ConfigServiceV2.UpdateSink", aPerson, true},
	{"google.logging.v2.ConfigServiceV2.DeleteSink", aPerson, true},
	{"google.logging.v2.ConfigServiceV2.DeleteSink", anApply, false},
	{"google.logging.v2.ConfigServiceV2.UpdateBucket", aPerson, true},
	{"google.logging.v2.ConfigServiceV2.CreateExclusion", aPerson, true},
	{"google.logging.v2.LoggingServiceV2.DeleteLog", aPerson, true},
	{"google.monitoring.v3.AlertPolicyService.DeleteAlertPolicy", aPerson, true},
	{"google.monitoring.v3.AlertPolicyService.UpdateAlertPolicy", aPerson, true},
	{"google.monitoring.v3.NotificationChannelService.DeleteNotificationChannel", aPerson, true},
	{"google.monitoring.v3.UptimeCheckService.DeleteUptimeCheckConfig", aPerson, true},
	{"DestroyCryptoKeyVersion", aPerson, true}, {"UpdateCryptoKeyPrimaryVersion", aPerson, true},
	{"UpdateCryptoKey", aPerson, true}, {"Decrypt", aPerson, true}, {"Decrypt", aFunction, false},
	{"AsymmetricSign", aPerson, true}, {"AsymmetricSign", aFunction, false},
	{"google.cloud.secretmanager.v1.SecretManagerService.AccessSecretVersion", aPerson, true},
	{"google.cloud.secretmanager.v1.SecretManagerService.AccessSecretVersion", aFunction, false},
	{"google.pubsub.v1.Publisher.CreateTopic", aPerson, false},
}

var (
	ofMethods    = regexp.MustCompile(`methodName=~"([^"]+)"`)
	notPrincipal = regexp.MustCompile(`NOT protoPayload\.authenticationInfo\.principalEmail=~"([^"]+)"`)
)

// changesAreSeen checks which entries of Google's audit log the alerts match.
func changesAreSeen(t testing.TB, s state) {
	t.Helper()
	var filters []string
	for _, a := range resources[struct {
		Conditions []struct {
			Log []struct{ Filter string } `json:"condition_matched_log"`
		}
	}](t, s, "google_monitoring_alert_policy") {
		if len(a.Conditions) == 1 && len(a.Conditions[0].Log) == 1 {
			filters = append(filters, a.Conditions[0].Log[0].Filter)
		}
	}
	if len(filters) == 0 {
		return
	}
	for _, line := range auditLines {
		seen := false
		for _, filter := range filters {
			seen = seen || matches(filter, line.method, line.principal)
		}
		if seen != line.noticed {
			t.Errorf("%s of %s: an alert notices it: %t, want %t", line.method, line.principal, seen, line.noticed)
		}
	}
}

// matches evaluates the parts of a filter about the method and the principal.
func matches(filter, method, principal string) bool {
	except := notPrincipal.FindStringSubmatch(filter)
	if except == nil || regexp.MustCompile(except[1]).MatchString(principal) {
		return false
	}
	for _, m := range ofMethods.FindAllStringSubmatch(filter, -1) {
		service := !strings.Contains(filter, "firestore.googleapis.com") || strings.Contains(method, "firestore")
		if service && regexp.MustCompile(m[1]).MatchString(method) {
			return true
		}
	}
	return false
}
