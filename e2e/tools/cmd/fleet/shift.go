package main

import (
	"regexp"
	"strings"
	"time"
)

// A form of time in a log: where it is, and how Go writes it.
type form struct {
	pattern *regexp.Regexp
	layout  string
}

// klog's form has a letter before it.
const klog = "0102 15:04:05"

// The forms of the recorded incidents. A form without a year takes the year of the incident.
var forms = []form{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`), "2006-01-02T15:04:05"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "2006-01-02 15:04:05"},
	{regexp.MustCompile(`\b\d{4}/\d\d/\d\d \d\d:\d\d:\d\d`), "2006/01/02 15:04:05"},
	{regexp.MustCompile(`\b\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d`), "01/02/2006-15:04:05"},
	{regexp.MustCompile(`\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}`), "Mon Jan _2 15:04:05 2006"},
	{regexp.MustCompile(`\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d\b`), "Jan _2 15:04:05"},
	{regexp.MustCompile(`\b\d\d-\d\d \d\d:\d\d:\d\d`), "01-02 15:04:05"},
	{regexp.MustCompile(`\b[IWEF]\d{4} \d\d:\d\d:\d\d`), klog},
}

// lastTime is the latest time that a text names, a second later; without any, some day.
func lastTime(text string) time.Time {
	last := time.Time{}
	for _, f := range forms {
		for _, found := range f.pattern.FindAllString(text, -1) {
			if t, err := f.parse(found, 2026); err == nil && t.After(last) {
				last = t
			}
		}
		if !last.IsZero() {
			return last.Add(time.Second)
		}
	}
	return time.Date(2026, 6, 18, 9, 10, 20, 0, time.UTC)
}

func (f form) parse(found string, year int) (time.Time, error) {
	if f.layout == klog {
		found = found[1:]
	}
	t, err := time.Parse(f.layout, found)
	if err == nil && t.Year() == 0 {
		t = t.AddDate(year, 0, 0)
	}
	return t, err
}

// shift moves every time in a text, so that an incident of last June ended a moment ago and all its parts
// still agree with each other. Seconds since boot stay: no clock of a fake node contradicts them.
func shift(text string, by time.Duration, year int) string {
	for _, f := range forms {
		text = f.pattern.ReplaceAllStringFunc(text, func(found string) string {
			t, err := f.parse(found, year)
			if err != nil {
				return found
			}
			head := ""
			if f.layout == klog {
				head = found[:1]
			}
			// Digits would be found again by a later form: "2026-06-18 08:00:00" holds "06-18 08:00:00".
			return head + guard(t.Add(by).Format(f.layout))
		})
	}
	return strings.NewReplacer(unguard...).Replace(text)
}

var unguard = func() (pairs []string) {
	for d := '0'; d <= '9'; d++ {
		pairs = append(pairs, string(0xE000+d), string(d))
	}
	return
}()

// guard puts private characters for digits until all forms have been through.
func guard(stamp string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return 0xE000 + r
		}
		return r
	}, stamp)
}
