package preference_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/preference"
)

// week is the working hours from Monday to Friday in Berlin.
func week(from, to string) preference.WorkingHours {
	return preference.WorkingHours{Days: preference.Days[:5], From: from, To: to, TimeZone: "Europe/Berlin"}
}

// TestWorkingHoursContain compares times with working hours, also at their ends, at midnight and in another time zone.
func TestWorkingHoursContain(t *testing.T) {
	for name, c := range map[string]struct {
		hours      preference.WorkingHours
		start, end string
		want       bool
	}{
		"within":         {week("09:00", "17:00"), "2027-01-05T10:00:00+01:00", "2027-01-05T11:00:00+01:00", true},
		"the whole day":  {week("09:00", "17:00"), "2027-01-05T09:00:00+01:00", "2027-01-05T17:00:00+01:00", true},
		"in UTC":         {week("09:00", "17:00"), "2027-01-05T08:00:00Z", "2027-01-05T16:00:00Z", true},
		"summer time":    {week("09:00", "17:00"), "2027-07-05T07:00:00Z", "2027-07-05T15:00:00Z", true},
		"too early":      {week("09:00", "17:00"), "2027-01-05T08:59:00+01:00", "2027-01-05T10:00:00+01:00", false},
		"too late":       {week("09:00", "17:00"), "2027-01-05T16:30:00+01:00", "2027-01-05T17:01:00+01:00", false},
		"a Saturday":     {week("09:00", "17:00"), "2027-01-09T10:00:00+01:00", "2027-01-09T11:00:00+01:00", false},
		"a Sunday":       {week("09:00", "17:00"), "2027-01-10T10:00:00+01:00", "2027-01-10T11:00:00+01:00", false},
		"over night":     {week("09:00", "24:00"), "2027-01-05T23:00:00+01:00", "2027-01-06T01:00:00+01:00", false},
		"until midnight": {week("09:00", "24:00"), "2027-01-05T23:00:00+01:00", "2027-01-06T00:00:00+01:00", true},
		"from midnight":  {week("00:00", "08:00"), "2027-01-05T00:00:00+01:00", "2027-01-05T01:00:00+01:00", true},
		"two days":       {week("00:00", "24:00"), "2027-01-05T00:00:00+01:00", "2027-01-07T00:00:00+01:00", false},
		"Friday's end":   {week("00:00", "24:00"), "2027-01-08T22:00:00+01:00", "2027-01-09T00:00:00+01:00", true},
		"an unknown place": {preference.WorkingHours{TimeZone: "Europe/Atlantis"}, "2027-01-05T03:00:00Z",
			"2027-01-05T04:00:00Z", true},
	} {
		start, errS := time.Parse(time.RFC3339, c.start)
		end, errE := time.Parse(time.RFC3339, c.end)
		if got := c.hours.Contain(start, end); got != c.want || errS != nil || errE != nil {
			t.Errorf("%s: %v, %v, %v; want %v", name, got, errS, errE, c.want)
		}
	}
}

func TestWorkingHoursString(t *testing.T) {
	for want, days := range map[string][]string{
		"Monday to Sunday, 09:00–17:00 (UTC)":                    preference.Days,
		"Saturday, Sunday, 09:00–17:00 (UTC)":                    {"sat", "sun"},
		"Monday, Wednesday to Friday, Sunday, 09:00–17:00 (UTC)": {"mon", "wed", "thu", "fri", "sun"},
		"Tuesday, 09:00–17:00 (UTC)":                             {"tue"},
	} {
		w := preference.WorkingHours{Days: days, From: "09:00", To: "17:00", TimeZone: "UTC"}
		if got := w.String(); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

func TestMinutes(t *testing.T) {
	for n, want := range map[int]string{1: "1 minute", 30: "30 minutes", 60: "1 hour", 61: "1 hour and 1 minute",
		150: "2 hours and 30 minutes", 1440: "24 hours"} {
		if got := preference.Minutes(n); got != want {
			t.Errorf("%d: %s; want %s", n, got, want)
		}
	}
}
