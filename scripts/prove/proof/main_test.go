package proof

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) {
	if Worked(trying(nil)) {
		return
	}
	leaktest.Main(m)
}
