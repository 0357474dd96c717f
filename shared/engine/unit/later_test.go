package unit

import (
	"reflect"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// TestKeepLater checks which members of earlier content stay: those that this release does not know, and none that it
// has removed.
func TestKeepLater(t *testing.T) {
	for name, c := range map[string]struct {
		of                  any
		before, after, want string
	}{
		"a removed member": {&run.User{}, `{"uid":"ana","disabled":true,"later":[1.50]}`, `{"uid":"ana"}`,
			`{"later":[1.50],"uid":"ana"}`},
		"a member of an embedded struct": {&run.User{}, `{"uid":"ana","open":2,"later":1}`, `{"uid":"ana","open":0}`,
			`{"later":1,"open":0,"uid":"ana"}`},
		"items of a log": {&run.Run{}, `{"log":{"tail":[{"seq":1,"later":"<"},{"seq":2,"later":2}],"count":2}}`,
			`{"log":{"tail":[{"seq":2},{"seq":3}],"count":3}}`,
			`{"log":{"count":3,"tail":[{"later":2,"seq":2},{"seq":3}]}}`},
		"a value inside": {&run.Approval{}, `{"place":{"later":1}}`, `{"place":{"id":"x"}}`,
			`{"place":{"id":"x","later":1}}`},
		"no object": {&run.Run{}, `{"updatedAt":{"later":1}}`, `{"updatedAt":"2027-01-01T00:00:00Z"}`,
			`{"updatedAt":"2027-01-01T00:00:00Z"}`},
	} {
		if got := keepLater([]byte(c.before), []byte(c.after), reflect.TypeOf(c.of)); string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
