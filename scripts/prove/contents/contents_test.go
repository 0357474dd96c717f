package contents

import (
	"os"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// TestContents makes hundreds of requests; a complete run makes far more than a thousand. None may be refused or have
// false content. A finding names the seed that reproduces it: go run ./scripts/prove contents -seed N -stories 1.
func TestContents(t *testing.T) {
	realpart.Long(t, "makes hundreds of requests")
	r := proof.Trial("contents", 1, os.Stdout)
	const few = 800
	requests := realpart.Trials(few, 1500)
	series(t.Context(), options{requests: requests}, r, nil)
	if n := r.Findings(); n > 0 {
		t.Errorf("%d findings", n)
	}
	for _, what := range met {
		if r.Counted(what) == 0 && requests > few { // a short run lacks rare situations
			t.Errorf("no story had: %s", what)
		}
	}
}

// TestContentsOverTheWire sends the requests of a few stories through Google's client.
func TestContentsOverTheWire(t *testing.T) {
	over, err := newWire()
	if err != nil {
		t.Fatal(err)
	}
	defer over.server.Close()
	r := proof.Trial("contents", 1_000_000, os.Stdout)
	series(t.Context(), options{requests: 200}, r, over)
	if n := r.Findings(); n > 0 {
		t.Errorf("%d findings", n)
	}
	if n := len(over.fake.Requests()); n < 200 {
		t.Errorf("%d requests were sent over HTTP", n)
	}
}
