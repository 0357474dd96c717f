package firestore_test

import (
	"cmp"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/store"
)

// indexFile is the form of Firebase's firestore.indexes.json
// (https://firebase.google.com/docs/reference/firestore/indexes), which Terraform reads too.
type indexFile struct {
	Indexes        []compositeIndex `json:"indexes"`
	FieldOverrides []fieldOverride  `json:"fieldOverrides"`
}

type compositeIndex struct {
	CollectionGroup string       `json:"collectionGroup"`
	QueryScope      string       `json:"queryScope"`
	Fields          []indexField `json:"fields"`
}

type indexField struct {
	FieldPath string `json:"fieldPath"`
	Order     string `json:"order"`
}

type fieldOverride struct {
	CollectionGroup string `json:"collectionGroup"`
	FieldPath       string `json:"fieldPath"`
	Indexes         []any  `json:"indexes"`
	TTL             bool   `json:"ttl,omitempty"`
}

func readIndexFile(t *testing.T) indexFile {
	t.Helper()
	f, err := os.Open("../../../infra/firestore-indexes.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	strict := json.NewDecoder(f)
	strict.DisallowUnknownFields()
	var file indexFile
	if err := strict.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file
}

// The emulator answers any query. So the file must agree with the list of queries that the code accepts: a composite
// index for each query with more than its order, and no index that no query uses. Firestore creates the other indexes
// itself, and keeps each collection in the order of its names.
func TestCompositeIndexes(t *testing.T) {
	var want []compositeIndex
	for _, x := range store.Indexes {
		if len(x.Equal) == 0 {
			continue
		}
		c := compositeIndex{CollectionGroup: x.Collection, QueryScope: "COLLECTION"}
		for _, f := range x.Equal {
			c.Fields = append(c.Fields, indexField{f, "ASCENDING"})
		}
		order := "ASCENDING"
		if x.Desc {
			order = "DESCENDING"
		}
		c.Fields = append(c.Fields, indexField{x.OrderBy, order})
		want = append(want, c)
	}
	got := readIndexFile(t).Indexes
	for _, all := range [][]compositeIndex{got, want} {
		slices.SortFunc(all, func(a, b compositeIndex) int { return cmp.Compare(name(a), name(b)) })
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("infra/firestore-indexes.json has\n%v\nstore.Indexes needs\n%v", got, want)
	}
}

func name(c compositeIndex) string {
	text := c.CollectionGroup
	for _, f := range c.Fields {
		text += " " + f.FieldPath + " " + f.Order
	}
	return text
}

// Data is large and never queried, so it must not be indexed. The same applies to the previous version and to the time
// at which a document may be deleted. A field that a query uses alone must not be exempt. Package document knows the
// fields that must be exempt.
func TestIndexExemptions(t *testing.T) {
	exempt, alone := map[string]bool{}, map[string]bool{}
	for _, x := range store.Indexes {
		if len(x.Equal) == 0 {
			alone[x.Collection+" "+x.OrderBy] = true
		}
	}
	var groups []string
	for _, o := range readIndexFile(t).FieldOverrides {
		if o.Indexes == nil || len(o.Indexes) > 0 {
			t.Errorf("%s.%s: an exemption has an empty list of indexes", o.CollectionGroup, o.FieldPath)
		}
		if alone[o.CollectionGroup+" "+o.FieldPath] {
			t.Errorf("%s.%s is exempt, and a query needs it", o.CollectionGroup, o.FieldPath)
		}
		if exempt[o.CollectionGroup+" "+o.FieldPath] {
			t.Errorf("%s.%s is there twice", o.CollectionGroup, o.FieldPath)
		}
		exempt[o.CollectionGroup+" "+o.FieldPath] = true
		groups = append(groups, o.CollectionGroup)
	}
	for _, x := range store.Indexes {
		groups = append(groups, x.Collection)
	}
	for _, g := range groups {
		if !exempt[g+" "+store.DataField] || !exempt[g+" "+store.PreviousField] {
			t.Errorf("%s: %s and %s are not both exempt", g, store.DataField, store.PreviousField)
		}
	}
}

// Only a consent that was never finished and the audit of deleted data have an expiry. Firestore must not delete any
// other document by time: it would delete the parts of a conversation one by one, in no order.
func TestExpiry(t *testing.T) {
	var expire []string
	for _, o := range readIndexFile(t).FieldOverrides {
		if o.TTL {
			expire = append(expire, o.CollectionGroup+"."+o.FieldPath)
		}
	}
	if want := []string{"audit.expireAt", "audit_heads.expireAt", "oauth_states.expireAt"}; !slices.Equal(expire,
		want) {
		t.Errorf("expiring are %v, want %v", expire, want)
	}
}

// Browsers and phones may not access the database directly, not even with a signed-in user.
func TestRulesOfDatabase(t *testing.T) {
	text, err := os.ReadFile("../../../infra/firestore.rules")
	if err != nil {
		t.Fatal(err)
	}
	allows := regexp.MustCompile(`(?m)^\s*allow .*$`).FindAllString(string(text), -1)
	if len(allows) != 1 || strings.TrimSpace(allows[0]) != "allow read, write: if false;" ||
		!strings.Contains(string(text), "match /{document=**}") {
		t.Fatalf("the rules allow %q", allows)
	}
}
