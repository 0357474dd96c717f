package hostile

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m, func() error {
		net, err := offline()
		if err != nil {
			return err
		}
		return net.Close()
	})
}
