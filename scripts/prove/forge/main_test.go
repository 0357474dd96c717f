package forge

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m, emulators.End) }
