package timezone_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/timezone"
)

func TestLoad(t *testing.T) {
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "Africa/Dar_es_Salaam",
		"Asia/Ho_Chi_Minh",
		"US/Eastern", "Etc/UTC", "Etc/GMT+5", // names that browsers report on some machines
	} {
		if zone, err := timezone.Load("timeZone", name); err != nil || zone.String() != name {
			t.Errorf("%s: %v, %v; want zone.String() %v", name, zone, err, name)
		}
	}
	for _, name := range []string{
		"", "EST", "MST", "HST", "EST5EDT", "MST7MDT", "CET", "WET", "GMT", "GMT+1", "Zulu", "Japan", "Cuba", "Local",
		"utc", "+01:00", "Europe", "Europe/",
		"/Europe/Berlin", "America/Argentina", "Europe/Atlantis", "europe/berlin", "../../etc/passwd",
		"Europe/../Europe/Berlin", "right/Europe/Berlin",
		"posix/Europe/Berlin", "Europe/Berlin ", "Europe/Berlin\n", "Europe/Berlin\x00", "Eurоpe/Berlin",
		strings.Repeat("A", 40) + "/" + strings.Repeat("B", 40),
	} {
		_, err := timezone.Load("timeZone", name)
		var f *fault.Error
		if !errors.As(err, &f) || f.Class != fault.Validation || f.Field != "timeZone" {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, name := range []string{"UTC", "Europe/Berlin", "EST", "Local", "../../etc/passwd", "right/Europe/Berlin",
		"Europe//Berlin"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		zone, err := timezone.Load("timeZone", name)
		if err != nil {
			return
		}
		if name != "UTC" && !strings.Contains(name, "/") || strings.Contains(name, "..") {
			t.Fatalf("%q is taken", name)
		}
		at := time.Date(2027, 1, 5, 10, 0, 0, 0, zone)
		if !at.In(time.UTC).In(zone).Equal(at) || zone.String() != name {
			t.Fatalf("%q is another zone", name)
		}
	})
}
