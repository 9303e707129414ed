//! Checks that the stack can be deployed in every partition of AWS (`aws`, `aws-us-gov`, `aws-cn`), whose ARNs and domains differ.

use std::fs;

use crate::template::template;

/// Returns the path and the text of each file of a deployment.
fn files() -> Vec<(String, String)> {
    let root = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![("template.yaml".to_owned(), fs::read_to_string(format!("{root}/template.yaml")).unwrap())];
    for folder in ["deploy", "statemachine"] {
        for entry in fs::read_dir(format!("{root}/{folder}")).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                let name = entry.file_name().into_string().unwrap();
                files.push((format!("{folder}/{name}"), fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    files
}

#[test]
fn files_of_a_deployment_name_no_partition_of_aws() {
    // The principals of services have the same name in every partition. The example is in a description.
    let same_everywhere =
        regex::Regex::new(r#"Service: [a-z]+\.amazonaws\.com|"[a-z]+\.amazonaws\.com"|such as https://\S+"#).unwrap();
    for (path, text) in files() {
        for (number, line) in text.lines().enumerate() {
            let place = format!("{path}:{}: {line}", number + 1);
            assert!(!line.contains("arn:aws:"), "{place}: use AWS::Partition");
            assert!(!same_everywhere.replace_all(line, "").contains("amazonaws.com"), "{place}: use AWS::URLSuffix");
        }
    }
}

#[test]
fn url_of_tokens_has_the_domain_of_the_partition() {
    let url = serde_yaml_ng::to_string(&template()["Outputs"]["TokenUrl"]["Value"]).unwrap();
    assert_eq!(
        url.trim(),
        "!If\n- IsGovCloud\n- !Sub https://${UsersDomain}.auth-fips.${AWS::Region}.amazoncognito.com/oauth2/token\n- !Sub \
         https://${UsersDomain}.auth.${AWS::Region}.amazoncognito.com/oauth2/token"
    );
    let found = files().iter().map(|(_, text)| text.matches("amazoncognito.com").count()).sum::<usize>();
    assert_eq!(found, 2, "another URL names the domain of one partition");
}
