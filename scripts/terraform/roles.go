package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// grant is one role of one identity.
type grant struct {
	Identity, Role, On string
}

// granted maps each type of grant to a description of its resource; %s is the resource's name.
var granted = []struct{ kind, on string }{
	{"google_project_iam_member", "project"},
	{"google_pubsub_topic_iam_member", "topic %s"},
	{"google_pubsub_subscription_iam_member", "subscription %s"},
	{"google_kms_crypto_key_iam_member", "key %s"},
	{"google_secret_manager_secret_iam_member", "secret %s"},
	{"google_artifact_registry_repository_iam_member", "images"},
	{"google_storage_bucket_iam_member", "bucket %s"},
	{"google_service_account_iam_member", "identity %s"},
	{"google_cloud_run_v2_service_iam_member", "function %s"},
}

// member is a grant in the provider's form. Each type of grant has one field that names the resource.
type member struct {
	Role, Member string
	Condition    []struct{ Title string }
	Topic        string
	Subscription string
	Secret       string `json:"secret_id"`
	Bucket       string
	Account      string `json:"service_account_id"`
	Service      string `json:"name"`
	Key          string `json:"crypto_key_id"`
}

func (m member) target() string {
	return m.Topic + m.Subscription + m.Secret + m.Bucket + m.Account + m.Service +
		m.Key[strings.LastIndex(m.Key, "/")+1:]
}

// unlisted reports whether a type of resource grants rights and is missing from the table.
func unlisted(kind string) bool {
	for _, g := range granted {
		if g.kind == kind {
			return false
		}
	}
	return strings.HasSuffix(kind, "_iam_member") || strings.HasSuffix(kind, "_iam_binding") ||
		strings.HasSuffix(kind, "_iam_policy")
}

type account struct {
	ID     string `json:"account_id"`
	Name   string `json:"name"`
	Member string `json:"member"`
}

// grants returns the grants of a state. An identity without roles has one grant without a role.
func grants(s state) ([]grant, error) {
	accounts, err := read[account](s, "google_service_account")
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	var out []grant
	for _, a := range accounts {
		known[a.Member], known[a.Name] = a.ID, a.ID
		out = append(out, grant{Identity: a.ID})
	}
	if other := s.all(unlisted); len(other) > 0 {
		return nil, fmt.Errorf("%s grants rights, but its type is not in the table", other[0].Address)
	}
	for _, g := range granted {
		members, err := read[member](s, g.kind)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			on := g.on
			if strings.Contains(on, "%s") {
				on = fmt.Sprintf(on, name(known, m.target()))
			}
			if len(m.Condition) > 0 {
				on += ", " + m.Condition[0].Title
			}
			out = append(out, grant{name(known, m.Member), path.Base(m.Role), on})
		}
	}
	return out, nil
}

// name returns the name of a known account, or a description of an account that is created elsewhere.
func name(known map[string]string, text string) string {
	if id := known[text]; id != "" {
		return id
	}
	if _, attribute, is := strings.Cut(text, "/attribute."); is {
		return "GitHub, " + strings.Replace(attribute, "/", " ", 1)
	}
	if strings.HasSuffix(text, "@gcp-sa-pubsub.iam.gserviceaccount.com") {
		return "Pub/Sub itself"
	}
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "serviceAccount:"), "@acme-prod.")
	return text
}

// table returns the grants as the table of terraform/access.md. Identities with the same roles on the same resources
// share a row.
func table(all []grant) string {
	roles := map[string]map[string][]string{} // resources, by identity and role
	for _, g := range all {
		if roles[g.Identity] == nil {
			roles[g.Identity] = map[string][]string{}
		}
		if g.Role != "" {
			roles[g.Identity][g.Role] = append(roles[g.Identity][g.Role], g.On)
		}
	}
	rows := map[string][]string{} // identities, by their roles
	for _, identity := range slices.Sorted(maps.Keys(roles)) {
		text := words(roles[identity])
		rows[text] = append(rows[text], identity)
	}
	var lines []string
	for text, identities := range rows {
		lines = append(lines, fmt.Sprintf("| %s | %s |\n", strings.Join(identities, ", "), text))
	}
	slices.Sort(lines)
	return "| identity | roles (on what) |\n| --- | --- |\n" + strings.Join(lines, "")
}

func words(roles map[string][]string) string {
	var out []string
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		slices.Sort(roles[role])
		out = append(out, fmt.Sprintf("`%s` (%s)", role, strings.Join(roles[role], "; ")))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
