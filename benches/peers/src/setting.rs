//! What one may choose without changing the engine, as words among a workload's parameters.
#![forbid(unsafe_code)]

/// The public settings that matter to a workload here.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// `idle=N`: an arrangement that is not in its most compact form does so much merging at each step
    /// (`differential_dataflow::Config::idle_merge_effort`). By default none.
    pub idle: Option<isize>,
    /// `progress=eager`: progress is sent as it is made, not held back until it may matter to others.
    pub eager: bool,
    /// `barrier=inputs`: the barrier's rounds are those of an input, not of a loop, as the workload `barrier` has it by
    /// default (timely's own example).
    pub inputs: bool,
    /// `time=one`, `time=one-total`: the workload `closure` with times of which there is one, so that nothing can change
    /// later; and with the operators for totally ordered times. By default times are numbers.
    pub time: Time,
}

/// What a time is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// Any number: updates may come later.
    #[default]
    Numbers,
    /// There is only one.
    One,
    /// The same, and operators that ask for a total order.
    OneTotal,
}

impl Setting {
    /// Takes the settings out of a command's words.
    ///
    /// # Errors
    /// A setting's value that is none.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<(Setting, Vec<String>), String> {
        let (mut setting, mut others) = (Setting::default(), Vec::new());
        for word in words {
            match word.split_once('=') {
                Some(("idle", effort)) => {
                    setting.idle = Some(effort.parse().map_err(|_| format!("{word}: not a number"))?);
                }
                Some(("progress", "eager")) => setting.eager = true,
                Some(("progress", "demand")) => setting.eager = false,
                Some(("barrier", "inputs")) => setting.inputs = true,
                Some(("barrier", "loop")) => setting.inputs = false,
                Some(("time", "numbers")) => setting.time = Time::Numbers,
                Some(("time", "one")) => setting.time = Time::One,
                Some(("time", "one-total")) => setting.time = Time::OneTotal,
                _ => others.push(word),
            }
        }
        Ok((setting, others))
    }
    /// As a report has it: what is not as it is by default.
    pub fn parameters(self) -> Vec<(String, String)> {
        let idle = self.idle.map(|effort| ("idle", effort.to_string()));
        let eager = self.eager.then(|| ("progress", "eager".to_string()));
        let inputs = self.inputs.then(|| ("barrier", "inputs".to_string()));
        let time = match self.time {
            Time::Numbers => None,
            Time::One => Some(("time", "one".to_string())),
            Time::OneTotal => Some(("time", "one-total".to_string())),
        };
        [idle, eager, inputs, time].into_iter().flatten().map(|(name, value)| (name.to_string(), value)).collect()
    }
}
